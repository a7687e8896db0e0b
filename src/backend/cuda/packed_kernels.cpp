// src/backend/cuda/packed_kernels.cpp: which kernels are shipped precompiled.
#include "backend/cuda/packed_kernels.h"

#include <algorithm>

#include "backend/cuda/attention_combine.h"
#include "backend/cuda/hopper_forward.h"
#include "plan/choose.h"
#include "plan/hopper_forward.h"

namespace tilewright::cuda {
namespace {

// Hopper's machines differ in memory and clock, not in what a kernel may use.
constexpr const char* kPackedMachine = "h200";

/// What of a workload is compiled in, or decides it. Other problems are compiled when first met.
struct Workload {
  std::int64_t qk_dim;
  std::int64_t v_dim;
  bool causal;
  bool softcap;
  bool alibi;
  bool unaligned;  ///< read by plain copies instead of TMA
  bool split;      ///< over keys, or with fp32 output
  std::int64_t tokens;
  bool few_queries;  ///< of heads that share keys
};

// Lengths around those where another tile is better.
constexpr std::int64_t kTokens[] = {512, 2048, 16384};

std::vector<Workload> workloads(PackScope scope) {
  std::vector<Workload> all;
  // Each combination of the features is a number, a feature to a bit.
  enum { kSplit = 1, kUnaligned = 2, kSoftcap = 4, kAlibi = 8, kCombinations = 16 };
  const auto shipped = [](const HopperDims& dims, bool causal, int features) {
    if (features == 0 || features == kSplit || features == kUnaligned) return true;
    if (features == kSoftcap) return causal && (dims.qk_dim == 128 || dims.qk_dim == 256);
    return features == kAlibi && causal && (dims.qk_dim == 64 || dims.qk_dim == 128);
  };
  for (const HopperDims& dims :
       {HopperDims{64, 64}, HopperDims{96, 96}, HopperDims{128, 128}, HopperDims{192, 128},
        HopperDims{192, 192}, HopperDims{256, 256}}) {
    for (const bool causal : {false, true}) {
      for (int features = 0; features < kCombinations; ++features) {
        if (scope == PackScope::shipped && !shipped(dims, causal, features)) continue;
        for (const bool few_queries : {false, true}) {
          for (const std::int64_t tokens : kTokens) {
            all.push_back({dims.qk_dim, dims.v_dim, causal, (features & kSoftcap) != 0,
                           (features & kAlibi) != 0, (features & kUnaligned) != 0,
                           (features & kSplit) != 0, tokens, few_queries});
          }
        }
      }
    }
  }
  return all;
}

AttentionSpec spec_of(const Workload& workload, DType dtype) {
  AttentionSpec spec;
  spec.batch = 32;  // tiles for every unit, so that no plan splits keys
  spec.q_lengths.max_tokens = workload.tokens;
  spec.kv_lengths.max_tokens = workload.tokens;
  spec.heads = spec.kv_heads = 16;
  if (workload.few_queries) {
    spec.heads = 4 * spec.kv_heads;
    spec.q_lengths.max_tokens = 1;
  }
  spec.dtype = dtype;
  spec.qk_dim = workload.qk_dim;
  spec.v_dim = workload.v_dim;
  spec.mask.causal = workload.causal;
  spec.softcap = workload.softcap ? 50 : 0;
  spec.alibi = workload.alibi ? PerHead::per_head : PerHead::none;
  if (workload.split) spec.o_dtype = DType::f32;
  const std::int64_t alignment = workload.unaligned ? 2 : 16;
  spec.q.alignment_bytes = spec.k.alignment_bytes = spec.v.alignment_bytes = alignment;
  return spec;
}

}  // namespace

std::vector<schedule::HopperForwardSpecialisation> packed_specialisations(PackScope scope) {
  std::vector<schedule::HopperForwardSpecialisation> kernels;
  const Result<Machine> machine = machine_profile(kPackedMachine);
  if (!machine.ok()) return kernels;
  for (const DType dtype : {DType::bf16, DType::f16}) {
    for (const Workload& workload : workloads(scope)) {
      const Result<AttentionProblem> problem = AttentionProblem::create(spec_of(workload, dtype));
      if (!problem.ok()) continue;
      const Result<Plan> plan = choose_plan(*problem, *machine, {});
      if (!plan.ok()) continue;
      const schedule::HopperForwardSpecialisation kernel =
          hopper_specialisation(*problem, plan->forward());
      if (std::find(kernels.begin(), kernels.end(), kernel) == kernels.end())
        kernels.push_back(kernel);
    }
  }
  return kernels;
}

std::vector<KernelSource> packed_kernels(PackScope scope) {
  std::vector<KernelSource> kernels{attention_combine_source()};
  for (const schedule::HopperForwardSpecialisation& s : packed_specialisations(scope)) {
    kernels.push_back(hopper_forward_source(s));
  }
  return kernels;
}

}  // namespace tilewright::cuda
