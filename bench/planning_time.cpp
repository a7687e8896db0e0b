// bench/planning_time.cpp: how long a plan takes, for this CPU and for every profile.
//
//   bench_planning_time [--tokens N]
//
// Causal, 8 heads of dim 128, the best of several plans. Prints CSV.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "tilewright/tilewright.h"

namespace {

using namespace tilewright;

DType dtype_of(const Machine& machine) {
  if (machine.bf16_flops_per_second.known()) return DType::bf16;
  return machine.f16_flops_per_second.known() ? DType::f16 : DType::f32;
}

double best_seconds(const Machine& machine, std::int64_t tokens) {
  AttentionSpec spec;
  spec.heads = spec.kv_heads = 8;
  spec.q_lengths.max_tokens = spec.kv_lengths.max_tokens = tokens;
  spec.qk_dim = 128;
  spec.dtype = dtype_of(machine);
  spec.mask.causal = true;
  const AttentionProblem problem = AttentionProblem::create(spec).value();
  double best = 1e30;
  for (int i = 0; i < 20; ++i) {
    const auto start = std::chrono::steady_clock::now();
    const Result<Plan> made = plan(problem, machine);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    if (!made.ok()) {
      std::fprintf(stderr, "%s: %s\n", machine.id.c_str(), made.status().message().c_str());
      std::exit(1);
    }
    best = std::min(best, took.count());
  }
  return best;
}

}  // namespace

int main(int argc, char** argv) {
  const bool given = argc == 3 && std::string(argv[1]) == "--tokens";
  if (argc != 1 && !given) {
    std::fprintf(stderr, "usage: %s [--tokens N]\n", argv[0]);
    return 2;
  }
  const std::int64_t tokens = given ? std::atoll(argv[2]) : 131072;
  std::vector<Machine> machines = {this_cpu()};
  for (const std::string& id : machine_profile_ids()) {
    machines.push_back(machine_profile(id).value());
  }
  std::printf("machine,tokens,milliseconds_a_plan\n");
  for (const Machine& machine : machines) {
    std::printf("%s,%lld,%.4f\n", machine.id.c_str(), static_cast<long long>(tokens),
                1e3 * best_seconds(machine, tokens));
  }
}
