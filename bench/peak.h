// bench/peak.h: what this CPU can do at most, measured in the same run as what is compared with it.
#pragma once

#include <cstddef>
#include <string>

namespace tilewright::bench {

/// Time that this process's threads have run, all together. Peaks of arithmetic and kernels alike
/// are timed by it, so that a share of the peak means something on a machine that others use too.
double cpu_seconds();

/// Time that has passed: for reading memory, whose speed all threads share.
double wall_seconds();

/// Clock of one busy core, from a chain of dependent one-cycle additions.
double clock_hz();

/// Independent fused multiply-adds in registers on `threads` threads, best of several tries:
/// FLOP/s. isa: "avx512", "avx2"; 0 if this CPU cannot.
double fma_flops_per_second(const std::string& isa, int threads);

/// The same for bf16 dot products with fp32 sums ("avx512_bf16").
double bf16_dot_flops_per_second(int threads);

/// Reading memory once with plain vector loads on `threads` threads, best of several tries by wall
/// clock.
double read_bytes_per_second(std::size_t bytes, int threads);

}  // namespace tilewright::bench
