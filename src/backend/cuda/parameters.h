// src/backend/cuda/parameters.h: the parts of a problem as kernels take them, shared by every
// family.
#pragma once

#include "kernels/attention/hopper_forward_params.h"
#include "tilewright/attention.h"

namespace tilewright::cuda {

/// A tensor's address and strides; packed ones have no batch stride.
kernels::StridedTensor strided(const void* data, const Strides& strides, bool packed);

kernels::SequenceLengths sequence_lengths(const Lengths& lengths, const std::int32_t* values);

kernels::HeadScalars head_scalars(PerHead kind, const float* data, std::int64_t heads);

/// Where a row's LSE lies: packed [heads, total tokens], else [batch, heads, tokens].
struct LseStrides {
  std::int64_t batch = 0;
  std::int64_t head = 0;
};
LseStrides lse_strides(const AttentionProblem& problem);

}  // namespace tilewright::cuda
