// bench/planner_quality.cpp: the planner's tile against the best of a search, and its foreseen time
// against the measured one, on this CPU.
//
// Times are processor time of one thread, the least of rounds that visit every tile in turn, so
// that other work on the machine disturbs all alike. Prints CSV.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tilewright/tilewright.h"

namespace {

using namespace tilewright;

double processor_seconds() {
  timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// Clock of this core, from a chain of dependent additions of one clock each.
double clock_hz() {
  constexpr int kSteps = 8'000'000;
  double best = 1e30;
  for (int attempt = 0; attempt < 5; ++attempt) {
    const double start = processor_seconds();
    std::uint64_t x = 1;
    for (int i = 0; i < kSteps; i += 8) {
#if defined(__x86_64__)
      __asm__ volatile(
          "add $1, %0\n add $1, %0\n add $1, %0\n add $1, %0\n"
          "add $1, %0\n add $1, %0\n add $1, %0\n add $1, %0\n"
          : "+r"(x));
#else
      for (int step = 0; step < 8; ++step) __asm__ volatile("add %0, %0, #1" : "+r"(x));
#endif
    }
    best = std::min(best, processor_seconds() - start);
  }
  return kSteps / best;
}

struct Timed {
  Plan plan;
  double seconds = 1e30;
};

/// Operands whose bits are small numbers in every type.
std::vector<std::uint16_t> operand(std::int64_t bytes, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<std::uint16_t> words(static_cast<std::size_t>(bytes / 2));
  for (auto& word : words) word = static_cast<std::uint16_t>(0x3c00 + (random() & 0x80ff));
  return words;
}

void compare(std::int64_t tokens, std::int64_t dim, DType dtype, bool causal,
             const Machine& machine, int rounds) {
  AttentionSpec spec;
  spec.heads = spec.kv_heads = 1;
  spec.q_lengths.max_tokens = spec.kv_lengths.max_tokens = tokens;
  spec.qk_dim = dim;
  spec.dtype = dtype;
  spec.mask.causal = causal;
  const AttentionProblem problem = AttentionProblem::create(spec).value();
  PlanOptions options;
  options.workers = 1;
  std::vector<Timed> timed;
  timed.push_back({plan(problem, machine, options).value()});
  for (const std::int64_t q_rows : {24, 48, 96, 144, 192, 288, 384, 576, 768}) {
    for (const std::int64_t kv_rows : {32, 64, 96, 128, 192, 256, 384, 512}) {
      if (q_rows > tokens || kv_rows > tokens) continue;
      options.tile = Tile{q_rows, kv_rows};
      Result<Plan> made = plan(problem, machine, options);
      if (made.ok()) timed.push_back({*std::move(made)});
    }
  }
  const auto element = static_cast<std::int64_t>(size_bytes(dtype));
  const auto q = operand(tokens * dim * element, 1);
  const auto k = operand(tokens * dim * element, 2);
  const auto v = operand(tokens * dim * element, 3);
  std::vector<std::uint16_t> o(q.size());
  AttentionTensors tensors;
  tensors.q = q.data();
  tensors.k = k.data();
  tensors.v = v.data();
  tensors.o = o.data();
  // As an engine calls: scratch is lent, so that no page is taken from the system while timed.
  std::size_t scratch_bytes = 64;
  for (const Timed& t : timed) scratch_bytes = std::max(scratch_bytes, workspace_bytes(t.plan));
  std::vector<std::byte> scratch(scratch_bytes + 64);
  void* aligned = scratch.data();
  std::size_t space = scratch.size();
  std::align(64, scratch_bytes, aligned, space);
  RunOptions run_options;
  run_options.workspace = {aligned, scratch_bytes};
  for (int round = 0; round < rounds; ++round) {
    for (Timed& t : timed) {
      const double start = processor_seconds();
      const Status status = run(t.plan, tensors, run_options);
      if (!status.ok()) {
        std::fprintf(stderr, "%s\n", status.message().c_str());
        std::exit(1);
      }
      t.seconds = std::min(t.seconds, processor_seconds() - start);
    }
  }
  const Timed& chosen = timed.front();
  const auto best =
      std::min_element(timed.begin(), timed.end(),
                       [](const Timed& a, const Timed& b) { return a.seconds < b.seconds; });
  const Tile mine = chosen.plan.forward().tile;
  const Tile found = best->plan.forward().tile;
  std::printf("%s,%lld,%lld,%d,%lldx%lld,%lldx%lld,%zu,%.4f,%.6f,%.6f,%.3f\n",
              std::string(name(dtype)).c_str(), static_cast<long long>(dim),
              static_cast<long long>(tokens), causal ? 1 : 0, static_cast<long long>(mine.q_rows),
              static_cast<long long>(mine.kv_rows), static_cast<long long>(found.q_rows),
              static_cast<long long>(found.kv_rows), timed.size(), chosen.seconds / best->seconds,
              chosen.seconds, chosen.plan.time.total_seconds,
              chosen.plan.time.total_seconds / chosen.seconds);
  std::fflush(stdout);
  if (std::getenv("TILEWRIGHT_EVERY_TILE") == nullptr) return;
  for (const Timed& t : timed) {
    const Tile tile = t.plan.forward().tile;
    std::printf("  # %lldx%lld %.6f s, foreseen %.6f s\n", static_cast<long long>(tile.q_rows),
                static_cast<long long>(tile.kv_rows), t.seconds, t.plan.time.total_seconds);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 5;
  const std::int64_t most_tokens = argc > 2 ? std::atoll(argv[2]) : 2048;
  // One core, at the clock that it has now: what the system says may be far from it.
  Machine machine = this_cpu();
  const double clock = clock_hz();
  machine.f32_flops_per_second.value *= clock / machine.clock_hz.value / machine.units;
  machine.bf16_flops_per_second.value *= clock / machine.clock_hz.value / machine.units;
  machine.clock_hz.value = clock;
  machine.units = 1;
  std::printf(
      "dtype,dim,tokens,causal,chosen,best,tiles,chosen_over_best,measured_seconds,"
      "foreseen_seconds,foreseen_over_measured\n");
  for (std::int64_t tokens = 512; tokens <= most_tokens; tokens *= 2) {
    for (const std::int64_t dim : {64, 96, 128, 256}) {
      for (const DType dtype : {DType::f32, DType::bf16}) {
        compare(tokens, dim, dtype, tokens % 1024 == 0, machine, rounds);
      }
    }
  }
}
