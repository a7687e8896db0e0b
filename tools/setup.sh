#!/usr/bin/env bash
# tools/setup.sh: installs what building Tilewright needs, or prints the exact command for whoever may.
#
#   tools/setup.sh build   compiler, CMake and libraries
#   tools/setup.sh test    also what the tests need
#   tools/setup.sh check   also linters, clang, the OpenMP that ThreadSanitizer understands, and Chromium
set -euo pipefail

build_packages=(g++ cmake ninja-build pkg-config libfmt-dev libhwy-dev libcli11-dev nlohmann-json3-dev
                libtomlplusplus-dev libhwloc-dev)
test_packages=(libgtest-dev libgmock-dev python3 git)
check_packages=(clang clang-format clang-tidy libomp-dev ccache chromium)

packages=("${build_packages[@]}")
case "${1:-build}" in
  build) ;;
  test) packages+=("${test_packages[@]}") ;;
  check) packages+=("${test_packages[@]}" "${check_packages[@]}") ;;
  *) echo "usage: tools/setup.sh build|test|check" >&2; exit 2 ;;
esac

missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0

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
