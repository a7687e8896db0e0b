# cmake/aarch64.cmake: toolchain that builds for 64-bit Arm and runs the tests under qemu.
#
#   dpkg --add-architecture arm64 && apt-get update
#   apt-get install qemu-user g++-aarch64-linux-gnu libgtest-dev:arm64 libfmt-dev:arm64 libhwy-dev:arm64 libgomp1:arm64
#   cmake -S . -B build-aarch64 -G Ninja --toolchain cmake/aarch64.cmake -DTILEWRIGHT_BUILD_CLI=OFF
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_PREFIX_PATH /usr/lib/aarch64-linux-gnu/cmake)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L /usr/aarch64-linux-gnu)
