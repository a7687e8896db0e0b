// src/machine/clock.cpp: times a chain of dependent additions.
#include "machine/clock.h"

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace tilewright::machine {

std::optional<double> measure_clock_hz() {
#if defined(__x86_64__) || defined(__aarch64__)
  constexpr int kTries = 8;
  constexpr int kSteps = 100'000;  // 25 to 50 microseconds
  double least = 1e30;
  for (int attempt = 0; attempt < kTries; ++attempt) {
    const auto start = std::chrono::steady_clock::now();
    std::uint64_t x = 1;
    const std::uint64_t step = 3;
    for (int i = 0; i < kSteps; i += 10) {
      // Added from a register: some processors add a constant while renaming, in no time.
#if defined(__x86_64__)
      __asm__ volatile(
          "add %1, %0\n add %1, %0\n add %1, %0\n add %1, %0\n add %1, %0\n"
          "add %1, %0\n add %1, %0\n add %1, %0\n add %1, %0\n add %1, %0\n"
          : "+r"(x)
          : "r"(step));
#else
      __asm__ volatile(
          "add %0, %0, %1\n add %0, %0, %1\n add %0, %0, %1\n add %0, %0, %1\n add %0, %0, %1\n"
          "add %0, %0, %1\n add %0, %0, %1\n add %0, %0, %1\n add %0, %0, %1\n add %0, %0, %1\n"
          : "+r"(x)
          : "r"(step));
#endif
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    least = std::min(least, took.count());
  }
  return kSteps / least;
#else
  return std::nullopt;
#endif
}

}  // namespace tilewright::machine
