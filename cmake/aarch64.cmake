# cmake/aarch64.cmake: toolchain that builds for 64-bit Arm and runs the tests under qemu.
#
# Needs g++-aarch64-linux-gnu and qemu-user. The libraries are headers alone, and this machine's own do. GoogleTest is
# built for Arm from its sources first; `tools/test.sh neon` does all of it.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L /usr/aarch64-linux-gnu)
# fmt's description lies with the libraries of this machine, but its headers are for any.
file(GLOB fmt_DIR /usr/lib/*/cmake/fmt)
