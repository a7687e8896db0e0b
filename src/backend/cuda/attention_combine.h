// src/backend/cuda/attention_combine.h: launches the kernel that merges the splits of a forward
// pass.
#pragma once

#include "backend/cuda/kernel_source.h"
#include "kernels/attention/attention_combine_params.h"
#include "tilewright/run.h"

namespace tilewright::cuda {

KernelSource attention_combine_source();

/// Where the workspace holds partial O: fp32 [splits, batch, tokens, heads, v_dim] (packed: no
/// batch).
kernels::StridedTensor partial_o(const AttentionProblem& problem, void* workspace);
std::int64_t partial_o_split_stride(const AttentionProblem& problem);

/// Where it holds partial LSE: fp32 [splits, then as LSE].
float* partial_lse(const AttentionProblem& problem, std::int64_t kv_splits, void* workspace);

/// The kernel's arguments for one call.
kernels::AttentionCombineParams attention_combine_params(const Plan& plan,
                                                         const AttentionTensors& tensors,
                                                         void* workspace);

/// Blocks to launch: enough for every row, but no more than are worth it.
unsigned attention_combine_blocks(const Plan& plan);

}  // namespace tilewright::cuda
