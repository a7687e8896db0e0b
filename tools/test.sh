#!/usr/bin/env bash
# tools/test.sh: builds and runs the tests; each part prints what it did and how long it took.
#
#   tools/test.sh release   structure, every test, the installed library from an outside project
#   tools/test.sh asan      every test under AddressSanitizer and UndefinedBehaviorSanitizer
#   tools/test.sh tsan      the threaded tests under ThreadSanitizer, with an OpenMP that it understands
#   tools/test.sh neon      the conformance suite on NEON's kernels, built for 64-bit Arm, under qemu
#   tools/test.sh lint      clang-format
#   tools/test.sh tidy      clang-tidy, on a build of `release`; minutes
set -euo pipefail
cd "$(dirname "$0")/.."
jobs=${JOBS:-$(nproc)}

say() { printf '\n== %s (at %ds)\n' "$1" "$SECONDS"; }

build() {  # preset, then targets
  local preset=$1 directory=build
  shift
  [ "$preset" = release ] || directory=build-$preset
  say "$preset: configure and build"
  cmake --preset "$preset" >"$directory.log" 2>&1 || { cat "$directory.log"; exit 1; }
  cmake --build "$directory" -j "$jobs" "$@" >>"$directory.log" 2>&1 ||
    { grep -E 'error|FAILED|warning' "$directory.log" | head -40; tail -n 20 "$directory.log"; exit 1; }
}

outside() {  # the installed library, from a project that knows nothing of this tree
  say 'install, then build and run an outside project'
  local prefix scratch
  scratch=$(mktemp -d)
  prefix=$scratch/prefix
  cmake --install build --prefix "$prefix" >"$scratch/log" 2>&1 &&
    cp -r examples "$scratch/examples" &&
    cmake -S "$scratch/examples/outside" -B "$scratch/outside" -G Ninja -DCMAKE_PREFIX_PATH="$prefix" >>"$scratch/log" 2>&1 &&
    cmake --build "$scratch/outside" >>"$scratch/log" 2>&1 || { tail -n 30 "$scratch/log"; exit 1; }
  ctest --test-dir "$scratch/outside" --output-on-failure
  rm -rf "$scratch"
}

case "${1:-release}" in
  release)
    say 'structure'
    python3 tools/check_structure.py --self-test
    python3 tools/check_structure.py
    build release
    say 'tests'
    ctest --test-dir build --output-on-failure -j "$jobs"
    outside
    ;;
  asan)
    build asan
    say 'tests under ASan and UBSan'
    TILEWRIGHT_TEST_SCALE=${TILEWRIGHT_TEST_SCALE:-0.1} ASAN_OPTIONS=detect_leaks=1:strict_string_checks=1 \
      UBSAN_OPTIONS=print_stacktrace=1 ctest --test-dir build-asan --output-on-failure -j "$jobs" -LE slow
    ;;
  tsan)
    build tsan --target threaded_tests
    say 'threaded tests under TSan'
    # These compare numbers in long loops; the rest of the suite runs the same code on as many threads.
    numbers_not_threads='^(Numbers|Rows|MaskProbe|Memory)\.'
    # Archer teaches ThreadSanitizer what OpenMP's barriers order.
    archer=$(find /usr/lib/llvm-* -name libarcher.so 2>/dev/null | sort | tail -n 1)
    [ -n "$archer" ] || { echo 'libarcher.so not found; it comes with libomp-dev'; exit 1; }
    TILEWRIGHT_TEST_SCALE=${TILEWRIGHT_TEST_SCALE:-0.05} OMP_TOOL_LIBRARIES=$archer \
      TSAN_OPTIONS=ignore_noninstrumented_modules=1:halt_on_error=1 \
      ctest --test-dir build-tsan --output-on-failure -j "$jobs" -L threads -E "$numbers_not_threads"
    ;;
  neon)
    say 'neon: configure and build'
    mkdir -p build-neon
    cross=(-G Ninja --toolchain "$PWD/cmake/aarch64.cmake" -DCMAKE_BUILD_TYPE=Release "-DCMAKE_PREFIX_PATH=$PWD/build-neon/prefix")
    {
      cmake -S /usr/src/googletest -B build-neon/googletest "${cross[@]}" -DBUILD_GMOCK=OFF &&
        cmake --build build-neon/googletest -j "$jobs" &&
        cmake --install build-neon/googletest --prefix build-neon/prefix &&
        cmake -S . -B build-neon "${cross[@]}" -DTILEWRIGHT_BUILD_CLI=OFF -DTILEWRIGHT_BUILD_EXAMPLES=OFF \
          -DTILEWRIGHT_KERNEL_PACK=OFF &&
        cmake --build build-neon -j "$jobs" --target test_conformance_cpu cpu_kernels_test
    } >build-neon.log 2>&1 ||
      { grep -E 'error|FAILED|warning' build-neon.log | head -40; tail -n 20 build-neon.log; exit 1; }
    say 'tests of NEON under qemu'
    # Emulated, so few cases; those left out are large, and of what instruction sets share.
    export TILEWRIGHT_TEST_SCALE=${TILEWRIGHT_TEST_SCALE:-0.02} TILEWRIGHT_TEST_VARIANT=neon
    qemu-aarch64 -L /usr/aarch64-linux-gnu build-neon/bin/cpu_kernels_test --gtest_brief=1 --gtest_filter='*neon*'
    qemu-aarch64 -L /usr/aarch64-linux-gnu build-neon/bin/test_conformance_cpu --gtest_brief=1 \
      --gtest_filter='Numbers.*:Rows.*:MaskProbe.*:Repeat.*:Memory.*nan*:Seeds*:-*long*:*Case08*'
    ;;
  lint)
    say 'clang-format'
    git ls-files '*.h' '*.cpp' '*.c' '*.cu' | xargs clang-format --dry-run -Werror
    ;;
  tidy)
    # Files that this build compiles: the others lack their flags.
    say 'clang-tidy'
    python3 -c 'import json; print(*sorted({e["file"] for e in json.load(open("build/compile_commands.json"))}), sep="\n")' |
      grep -E '/(src|cli|report)/.*\.cpp$' | grep -v /build/ |
      xargs -P "$jobs" -n 4 clang-tidy -p build --quiet --extra-arg=-Wno-unknown-warning-option 2>/dev/null
    ;;
  *)
    sed -n 's/^#   //p' "$0" >&2
    exit 2
    ;;
esac
say 'done'
