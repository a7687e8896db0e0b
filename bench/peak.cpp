// bench/peak.cpp: loops that reach the CPU's arithmetic and memory rates.
#include "peak.h"

#include <immintrin.h>
#include <omp.h>
#include <time.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace tilewright::bench {
namespace {

double seconds_of(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

template <class Work>
double best_seconds(int tries, double (*now)(), const Work& work) {
  double best = 1e30;
  for (int i = 0; i < tries; ++i) {
    const double start = now();
    work();
    best = std::min(best, now() - start);
  }
  return best;
}

constexpr std::int64_t kIterations = 500'000;
constexpr int kChains = 12;  // more than any FMA latency times units

[[gnu::target("avx512f")]] float avx512_chains() {
  __m512 sum[kChains];
  for (auto& s : sum) s = _mm512_set1_ps(1.0f);
  __m512 a = _mm512_set1_ps(0.5f);
  const __m512 b = _mm512_set1_ps(0.25f);
  for (std::int64_t i = 0; i < kIterations; ++i) {
    asm volatile("" : "+v"(a));
#pragma GCC unroll 12
    for (auto& s : sum) s = _mm512_fmadd_ps(s, a, b);
  }
  __m512 all = sum[0];
  for (const auto& s : sum) all = _mm512_add_ps(all, s);
  return _mm512_cvtss_f32(all);
}

[[gnu::target("avx2,fma")]] float avx2_chains() {
  __m256 sum[kChains];
  for (auto& s : sum) s = _mm256_set1_ps(1.0f);
  __m256 a = _mm256_set1_ps(0.5f);
  const __m256 b = _mm256_set1_ps(0.25f);
  for (std::int64_t i = 0; i < kIterations; ++i) {
    asm volatile("" : "+x"(a));
#pragma GCC unroll 12
    for (auto& s : sum) s = _mm256_fmadd_ps(s, a, b);
  }
  __m256 all = sum[0];
  for (const auto& s : sum) all = _mm256_add_ps(all, s);
  return _mm256_cvtss_f32(all);
}

[[gnu::target("avx512f,avx512bf16")]] float bf16_chains() {
  __m512 sum[kChains];
  for (auto& s : sum) s = _mm512_set1_ps(1.0f);
  __m512i a = _mm512_set1_epi32(0x3f003f00);
  const __m512i b = _mm512_set1_epi32(0x3e803e80);
  for (std::int64_t i = 0; i < kIterations; ++i) {
    asm volatile("" : "+v"(a));
#pragma GCC unroll 12
    for (auto& s : sum) {
      s = _mm512_dpbf16_ps(s, reinterpret_cast<__m512bh>(a), reinterpret_cast<__m512bh>(b));
    }
  }
  __m512 all = sum[0];
  for (const auto& s : sum) all = _mm512_add_ps(all, s);
  return _mm512_cvtss_f32(all);
}

// The reads ask `ahead` floats ahead for what they will need; 0: the CPU alone sees to that.
[[gnu::target("avx512f")]] float read_avx512(const float* from, std::size_t count,
                                             std::size_t ahead) {
  __m512 sum[4] = {_mm512_setzero_ps(), _mm512_setzero_ps(), _mm512_setzero_ps(),
                   _mm512_setzero_ps()};
  for (std::size_t i = 0; i + 64 <= count; i += 64) {
    if (ahead > 0) {
      for (std::size_t at = 0; at < 64; at += 16) __builtin_prefetch(from + i + ahead + at, 0, 2);
    }
#pragma GCC unroll 4
    for (std::size_t v = 0; v < 4; ++v) {
      sum[v] = _mm512_add_ps(sum[v], _mm512_loadu_ps(from + i + v * 16));
    }
  }
  return _mm512_cvtss_f32(
      _mm512_add_ps(_mm512_add_ps(sum[0], sum[1]), _mm512_add_ps(sum[2], sum[3])));
}

[[gnu::target("avx2")]] float read_avx2(const float* from, std::size_t count, std::size_t ahead) {
  __m256 sum[4] = {_mm256_setzero_ps(), _mm256_setzero_ps(), _mm256_setzero_ps(),
                   _mm256_setzero_ps()};
  for (std::size_t i = 0; i + 32 <= count; i += 32) {
    if (ahead > 0) {
      for (std::size_t at = 0; at < 32; at += 16) __builtin_prefetch(from + i + ahead + at, 0, 2);
    }
#pragma GCC unroll 4
    for (std::size_t v = 0; v < 4; ++v) {
      sum[v] = _mm256_add_ps(sum[v], _mm256_loadu_ps(from + i + v * 8));
    }
  }
  return _mm256_cvtss_f32(
      _mm256_add_ps(_mm256_add_ps(sum[0], sum[1]), _mm256_add_ps(sum[2], sum[3])));
}

volatile float sink;

double chains_per_second(float (*chains)(), double flops_per_step, int threads) {
  // Each thread by its own clock, which another's waiting does not enter.
  double seconds = 1e30;
  for (int i = 0; i < 4; ++i) {
    double slowest = 0;
#pragma omp parallel num_threads(threads) reduction(max : slowest)
    {
      const double start = seconds_of(CLOCK_THREAD_CPUTIME_ID);
      sink = chains();
      slowest = seconds_of(CLOCK_THREAD_CPUTIME_ID) - start;
    }
    seconds = std::min(seconds, slowest);
  }
  return flops_per_step * kChains * static_cast<double>(kIterations) * threads / seconds;
}

}  // namespace

double cpu_seconds() {
  return seconds_of(CLOCK_PROCESS_CPUTIME_ID);
}

double wall_seconds() {
  return seconds_of(CLOCK_MONOTONIC);
}

double clock_hz() {
  constexpr std::int64_t kSteps = 20'000'000;
  const double seconds = best_seconds(4, cpu_seconds, [] {
    std::uint64_t x = 1;
    // From a register: some processors add a constant while renaming, in no time.
    const std::uint64_t step = 3;
    for (std::int64_t i = 0; i < kSteps; i += 8) {
      asm volatile(
          "add %1, %0\n add %1, %0\n add %1, %0\n add %1, %0\n"
          "add %1, %0\n add %1, %0\n add %1, %0\n add %1, %0\n"
          : "+r"(x)
          : "r"(step));
    }
  });
  return static_cast<double>(kSteps) / seconds;
}

double fma_flops_per_second(const std::string& isa, int threads) {
  if (isa.starts_with("avx512") && __builtin_cpu_supports("avx512f")) {
    return chains_per_second(avx512_chains, 32, threads);
  }
  if (isa == "avx2" && __builtin_cpu_supports("avx2")) {
    return chains_per_second(avx2_chains, 16, threads);
  }
  return 0;
}

double bf16_dot_flops_per_second(int threads) {
  if (!__builtin_cpu_supports("avx512bf16")) return 0;
  return chains_per_second(bf16_chains, 64, threads);
}

double read_bytes_per_second(std::size_t bytes, int threads) {
  static const std::vector<float> data(bytes / sizeof(float), 1.0f);
  const bool wide = __builtin_cpu_supports("avx512f");
  const std::size_t part = data.size() / static_cast<std::size_t>(threads);
  double seconds = 1e30;
  for (const std::size_t ahead : {0, 4096}) {
    seconds = std::min(
        seconds, best_seconds(2, wall_seconds, [&] {
#pragma omp parallel num_threads(threads)
          {
            const float* from = data.data() + part * static_cast<std::size_t>(omp_get_thread_num());
            sink = wide ? read_avx512(from, part, ahead) : read_avx2(from, part, ahead);
          }
        }));
  }
  return static_cast<double>(part * static_cast<std::size_t>(threads) * sizeof(float)) / seconds;
}

}  // namespace tilewright::bench
