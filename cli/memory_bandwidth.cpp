// cli/memory_bandwidth.cpp: reads a buffer that no cache holds, from every core at once.
#include "memory_bandwidth.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <new>

#include "tilewright/run.h"

namespace tilewright::cli {
namespace {

using Clock = std::chrono::steady_clock;

// Independent sums, so that loads and not additions set the pace.
std::uint64_t sum(const std::uint64_t* words, std::int64_t count) {
  std::uint64_t sums[8] = {};
  for (std::int64_t i = 0; i + 8 <= count; i += 8) {
    for (int lane = 0; lane < 8; ++lane) sums[lane] += words[i + lane];
  }
  std::uint64_t all = 0;
  for (const std::uint64_t lane : sums) all += lane;
  return all;
}

}  // namespace

Figure measure_memory_bandwidth(const Machine& machine) {
  constexpr double kSeconds = 0.25;
  constexpr std::int64_t kMiB = 1 << 20;
  // Four times the caches, within what any machine can spare.
  const std::int64_t cache = static_cast<std::int64_t>(machine.cache_bytes.value);
  const std::int64_t bytes = std::clamp<std::int64_t>(4 * cache, 64 * kMiB, 1024 * kMiB);
  const std::int64_t words = bytes / 8;
  const std::unique_ptr<std::uint64_t[]> buffer(new (std::nothrow) std::uint64_t[words]);
  if (buffer == nullptr) return {};
  const std::int64_t workers = std::max<std::int64_t>(1, machine.units);
  std::atomic<std::uint64_t> kept = 0;  // so that no read is left out
  const auto pass = [&](const auto& part) {
    default_executor().run_workers(workers, [&](std::int64_t worker) {
      part(buffer.get() + words * worker / workers,
           words * (worker + 1) / workers - words * worker / workers);
    });
  };
  // Each worker writes its own part first, so that its pages lie near it.
  pass([](std::uint64_t* part, std::int64_t count) { std::fill_n(part, count, 1); });
  double best = 0;
  const auto start = Clock::now();
  do {
    const auto pass_start = Clock::now();
    pass([&](const std::uint64_t* part, std::int64_t count) { kept += sum(part, count); });
    const std::chrono::duration<double> elapsed = Clock::now() - pass_start;
    best = std::max(best, static_cast<double>(bytes) / elapsed.count());
  } while (std::chrono::duration<double>(Clock::now() - start).count() < kSeconds);
  if (kept == 0) return {};
  return {best, Grade::measured, fmt::format("read by {} threads in this run", workers)};
}

}  // namespace tilewright::cli
