// src/backend/cuda/attention_combine.cpp: launches the kernel that merges the splits of a forward
// pass.
#include "backend/cuda/attention_combine.h"

#include <algorithm>

#include "backend/cuda/parameters.h"
#include "plan/hopper_forward.h"

namespace tilewright::cuda {
namespace {

namespace device = tilewright::kernels;

// Blocks walk the rows, so more than a few waves of them gain nothing.
constexpr std::int64_t kMostBlocks = 4096;

device::CombinedElement element_of(DType dtype) {
  switch (dtype) {
    case DType::bf16:
      return device::CombinedElement::bf16;
    case DType::f16:
      return device::CombinedElement::f16;
    default:
      return device::CombinedElement::f32;
  }
}

}  // namespace

KernelSource attention_combine_source() {
  KernelSource source;
  source.name = "attention_combine";
  source.entry = "attention_combine";
  source.file = "kernels/attention/attention_combine.cu";
  source.threads = device::kCombineThreads;
  source.dynamic_shared_bytes = device::kCombineSharedBytes;
  return source;
}

device::StridedTensor partial_o(const AttentionProblem& problem, void* workspace) {
  const AttentionSpec& spec = problem.spec();
  const bool packed = spec.q_lengths.kind == LengthKind::cumulative;
  char* data = static_cast<char*>(workspace) + hopper_workspace(problem, 1).partial_o_offset;
  return strided(data, Strides::bshd(problem.q_len(), spec.heads, spec.v_dim), packed);
}

std::int64_t partial_o_split_stride(const AttentionProblem& problem) {
  return problem.lse_rows() * problem.spec().v_dim;
}

float* partial_lse(const AttentionProblem& problem, std::int64_t kv_splits, void* workspace) {
  return reinterpret_cast<float*>(static_cast<char*>(workspace) +
                                  hopper_workspace(problem, kv_splits).partial_lse_offset);
}

device::AttentionCombineParams attention_combine_params(const Plan& plan,
                                                        const AttentionTensors& tensors,
                                                        void* workspace) {
  const AttentionProblem& problem = plan.problem;
  const AttentionSpec& spec = problem.spec();
  const LseStrides lse = lse_strides(problem);
  device::AttentionCombineParams params{};
  params.partial_o = partial_o(problem, workspace);
  params.partial_o_split_stride = partial_o_split_stride(problem);
  params.partial_lse = partial_lse(problem, plan.forward().kv_splits, workspace);
  params.partial_lse_batch_stride = lse.batch;
  params.partial_lse_head_stride = lse.head;
  params.partial_lse_split_stride = problem.lse_rows();
  params.o = strided(tensors.o, problem.o(), spec.q_lengths.kind == LengthKind::cumulative);
  params.lse = tensors.lse;
  params.lse_batch_stride = lse.batch;
  params.lse_head_stride = lse.head;
  params.q_lengths = sequence_lengths(spec.q_lengths, tensors.q_lengths);
  params.sinks = head_scalars(spec.sinks, tensors.sinks, spec.heads);
  params.batch = static_cast<int>(spec.batch);
  params.heads = static_cast<int>(spec.heads);
  params.v_dim = static_cast<int>(spec.v_dim);
  params.splits = static_cast<int>(plan.forward().kv_splits);
  params.element = element_of(problem.o_dtype());
  return params;
}

unsigned attention_combine_blocks(const Plan& plan) {
  const AttentionSpec& spec = plan.problem.spec();
  return static_cast<unsigned>(
      std::clamp<std::int64_t>(device::combine_blocks(spec.batch, spec.heads, plan.problem.q_len(),
                                                      static_cast<int>(plan.forward().kv_splits)),
                               1, kMostBlocks));
}

}  // namespace tilewright::cuda
