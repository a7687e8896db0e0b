// src/backend/cuda/parameters.cpp: the parts of a problem as kernels take them, shared by every
// family.
#include "backend/cuda/parameters.h"

namespace tilewright::cuda {

namespace device = tilewright::kernels;

device::StridedTensor strided(const void* data, const Strides& strides, bool packed) {
  return {const_cast<void*>(data), packed ? 0 : strides.batch, strides.token, strides.head,
          strides.dim};
}

device::SequenceLengths sequence_lengths(const Lengths& lengths, const std::int32_t* values) {
  device::SequenceLengths out{};
  switch (lengths.kind) {
    case LengthKind::fixed:
      out.kind = device::LengthKind::fixed;
      break;
    case LengthKind::per_sequence:
      out.kind = device::LengthKind::per_sequence;
      break;
    case LengthKind::cumulative:
      out.kind = device::LengthKind::cumulative;
      break;
  }
  out.values = lengths.kind == LengthKind::fixed ? nullptr : values;
  out.bound = lengths.max_tokens;
  out.total_rows = lengths.total_tokens;
  return out;
}

device::HeadScalars head_scalars(PerHead kind, const float* data, std::int64_t heads) {
  if (kind == PerHead::none) return {nullptr, 0, 0};
  return {data, kind == PerHead::per_batch_head ? heads : 0, 1};
}

LseStrides lse_strides(const AttentionProblem& problem) {
  const AttentionSpec& spec = problem.spec();
  if (spec.q_lengths.kind == LengthKind::cumulative) return {0, spec.q_lengths.total_tokens};
  return {spec.heads * problem.q_len(), problem.q_len()};
}

}  // namespace tilewright::cuda
