// cli/measure.cpp: measures this CPU.
#include "measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "backend/cpu/cpu_backend.h"
#include "backend/cpu/kernels.h"
#include "machine/instruction_set.h"
#include "process_time.h"
#if defined(TILEWRIGHT_HAVE_PEAK_LOOPS)
#include "../bench/peak.h"
#endif

namespace tilewright::cli {
namespace {

/// A loop that gets less than this of what clock and width allow was disturbed or is no peak.
constexpr double kTrustedShare = 0.9;
/// One that gets more shows that a figure is wrong.
constexpr double kMostShare = 1.05;
/// Larger than caches that a core has to itself and its part of a shared one.
constexpr std::size_t kMemoryBytes = std::size_t{256} << 20;

Figure measured(double value, std::string how) {
  return {value, Grade::measured, "here; " + std::move(how)};
}

template <typename Work>
double least_seconds(int tries, Work work) {
  double least = 1e30;
  for (int i = 0; i < tries; ++i) {
    const double start = process_seconds();
    work();
    least = std::min(least, process_seconds() - start);
  }
  return least;
}

Figure exp_rate(std::int64_t cores) {
  const Result<const cpu::Kernels*> kernels = cpu::find_kernels("", DType::f32);
  if (!kernels.ok()) return {};
  constexpr std::int64_t kCount = 4096;  // in L1
  constexpr int kRounds = 2000;
  std::vector<float> from(kCount, -1.5f);
  std::vector<float> to(kCount);
  const double seconds = least_seconds(3, [&] {
    for (int round = 0; round < kRounds; ++round) {
      (*kernels)->exp2(from.data(), to.data(), kCount);
    }
  });
  return measured(static_cast<double>(cores) * kCount * kRounds / seconds,
                  "exponentials of one core times cores");
}

Figure copy_rate() {
  std::vector<char> from(kMemoryBytes, 1);
  std::vector<char> to(kMemoryBytes, 2);
  const double seconds =
      least_seconds(3, [&] { std::memcpy(to.data(), from.data(), kMemoryBytes); });
  return measured(2.0 * static_cast<double>(kMemoryBytes) / seconds,
                  "one core copies 256 MiB; bytes read and written");
}

#if defined(TILEWRIGHT_HAVE_PEAK_LOOPS)

/// Notes a peak, and how much it is of what clock and width allow.
Figure peak(double flops, double allowed, const char* what, double& share,
            std::vector<std::string>& doubts) {
  if (flops <= 0) return {};
  share = flops / allowed;
  const std::string text =
      fmt::format("{} in registers: {:.0f}% of clock x width", what, 100 * share);
  if (share > kMostShare) {
    doubts.push_back(
        fmt::format("{}, more than {:.0f}%: clock or width were misread", text, 100 * kMostShare));
  } else if (share < kTrustedShare) {
    doubts.push_back(
        fmt::format("{}, less than {:.0f}%: the machine was busy, or the loop is no peak", text,
                    100 * kTrustedShare));
  }
  return measured(flops, text);
}

void measure_peaks(Measurement& m) {
  const machine::Processor processor = machine::this_processor();
  const auto threads = static_cast<int>(m.machine.units);
  const double clock = bench::clock_hz();
  m.machine.clock_hz = measured(clock, "a chain of additions of one clock each");
  const double all = clock * static_cast<double>(m.machine.units);
  const Figure f32 =
      peak(bench::fma_flops_per_second(m.machine.arch == "x86-64-v4" ? "avx512" : "avx2", threads),
           all * processor.f32_flops_per_clock, "fp32 multiply-adds", m.f32_peak_share, m.doubts);
  if (f32.known()) m.machine.f32_flops_per_second = f32;
  const Figure bf16 =
      peak(bench::bf16_dot_flops_per_second(threads), all * processor.bf16_flops_per_clock,
           "bf16 dot products", m.bf16_peak_share, m.doubts);
  if (bf16.known()) m.machine.bf16_flops_per_second = bf16;
  m.machine.memory_bytes_per_second = measured(bench::read_bytes_per_second(kMemoryBytes, threads),
                                               fmt::format("{} threads read 256 MiB", threads));
  if (m.machine.cache_bytes.known() &&
      m.machine.cache_bytes.value >= static_cast<double>(kMemoryBytes)) {
    m.doubts.emplace_back("256 MiB fit the last-level cache, so the bandwidth is the cache's");
  }
}

#else

void measure_peaks(Measurement& m) {
  m.doubts.emplace_back("this build has no peak loops for this processor");
}

#endif

}  // namespace

Measurement measure(Machine machine) {
  Measurement m;
  m.machine = std::move(machine);
  measure_peaks(m);
  m.machine.exp_per_second = exp_rate(m.machine.units);
  m.copy_bytes_per_second = copy_rate();
  return m;
}

}  // namespace tilewright::cli
