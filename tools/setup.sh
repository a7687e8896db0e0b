#!/usr/bin/env bash
# tools/setup.sh: installs what building Tilewright needs, or prints the exact command for whoever may.
#
#   tools/setup.sh build   compiler, CMake and libraries
#   tools/setup.sh test    also what the tests need
#   tools/setup.sh check   also linters, clang with the OpenMP that ThreadSanitizer understands, Chromium, a compiler
#                          and an emulator of 64-bit Arm, and, in .venv, the compiler of CUDA kernels
set -euo pipefail

build_packages=(g++ cmake ninja-build pkg-config libfmt-dev libhwy-dev libcli11-dev nlohmann-json3-dev
                libtomlplusplus-dev libhwloc-dev)
test_packages=(libgtest-dev libgmock-dev python3 git)
check_packages=(clang clang-format clang-tidy libomp-dev ccache chromium python3-venv g++-aarch64-linux-gnu qemu-user)

cd "$(dirname "$0")/.."
level=${1:-build}
packages=("${build_packages[@]}")
case "$level" in
  build) ;;
  test) packages+=("${test_packages[@]}") ;;
  check) packages+=("${test_packages[@]}" "${check_packages[@]}") ;;
  *) echo "usage: tools/setup.sh build|test|check" >&2; exit 2 ;;
esac

missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing+=("$package")
done
compiler_of_kernels() {  # NVRTC is a library from PyPI: no toolkit, no GPU
  [ "$level" = check ] || return 0
  [ -n "$(find .venv -name 'libnvrtc.so.13' 2>/dev/null)" ] && return 0
  echo 'installing nvidia-cuda-nvrtc into .venv'
  python3 -m venv .venv && .venv/bin/pip install --quiet --disable-pip-version-check 'nvidia-cuda-nvrtc>=13.3'
}

if [ ${#missing[@]} -eq 0 ]; then
  compiler_of_kernels
  exit
fi

run=()
if [ "$(id -u)" -ne 0 ]; then
  if command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
    run=(sudo)
  else
    echo "Tilewright needs packages that are not installed. Run, then try again:" >&2
    echo "  sudo apt-get update && sudo apt-get install -y ${missing[*]}" >&2
    exit 1
  fi
fi
echo "installing ${missing[*]}"
log=$(mktemp)
if ! { "${run[@]}" apt-get update && DEBIAN_FRONTEND=noninteractive "${run[@]}" apt-get install -y --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
  tail -n 20 "$log" >&2
  echo "installing failed; the whole log is in $log" >&2
  exit 1
fi
rm -f "$log"
compiler_of_kernels
