// src/plan/copy_engine.cpp: which operands Hopper's copy engine (TMA) can read.
#include "plan/copy_engine.h"

#include <fmt/format.h>

namespace tilewright {
namespace {

constexpr std::int64_t kStrideLimitBytes = std::int64_t{1} << 40;
// Extents may reach 2^32, but kernels address tiles with signed 32-bit coordinates.
constexpr std::int64_t kExtentLimit = std::int64_t{1} << 31;

OperandShape shape_of(const AttentionProblem& problem, const Operand& operand,
                      const Lengths& lengths, std::int64_t heads, std::int64_t dim) {
  const bool packed = lengths.kind == LengthKind::cumulative;
  return {problem.spec().dtype,
          packed ? 1 : problem.spec().batch,
          packed ? lengths.total_tokens : lengths.max_tokens,
          heads,
          dim,
          *operand.strides,
          operand.alignment_bytes};
}

}  // namespace

OperandShape q_shape(const AttentionProblem& problem) {
  const AttentionSpec& spec = problem.spec();
  return shape_of(problem, spec.q, spec.q_lengths, spec.heads, spec.qk_dim);
}

OperandShape k_shape(const AttentionProblem& problem) {
  const AttentionSpec& spec = problem.spec();
  return shape_of(problem, spec.k, spec.kv_lengths, spec.kv_heads, spec.qk_dim);
}

OperandShape v_shape(const AttentionProblem& problem) {
  const AttentionSpec& spec = problem.spec();
  return shape_of(problem, spec.v, spec.kv_lengths, spec.kv_heads, spec.v_dim);
}

std::array<OuterAxis, 3> outer_axes(const OperandShape& shape) {
  return {OuterAxis{"token", shape.rows, shape.strides.token},
          OuterAxis{"head", shape.heads, shape.strides.head},
          OuterAxis{"batch", shape.batch, shape.strides.batch}};
}

std::string copy_engine_refusal(std::string_view operand, const OperandShape& shape) {
  const auto element = static_cast<std::int64_t>(size_bytes(shape.dtype));
  if (shape.alignment_bytes < kCopyEngineAlignment) {
    return fmt::format("{}.alignment_bytes is {}; TMA needs {}", operand, shape.alignment_bytes,
                       kCopyEngineAlignment);
  }
  if (shape.dim > 1 && shape.strides.dim != 1) {
    return fmt::format("{}.strides.dim is {}; TMA needs 1", operand, shape.strides.dim);
  }
  for (const OuterAxis& axis : outer_axes(shape)) {
    if (axis.extent >= kExtentLimit) {
      return fmt::format("{} has {} along {}; TMA needs less than 2^31", operand, axis.extent,
                         axis.name);
    }
    if (axis.extent <= 1) continue;  // The stride is never used.
    // Bounded first, so that the products cannot overflow.
    if (axis.stride <= 0 || axis.stride >= kStrideLimitBytes ||
        axis.stride * element % kCopyEngineAlignment != 0 ||
        axis.stride * element >= kStrideLimitBytes) {
      return fmt::format(
          "{}.strides.{} is {}; TMA needs a positive multiple of {}, below 2^40 bytes", operand,
          axis.name, axis.stride, kCopyEngineAlignment / element);
    }
  }
  return {};
}

std::string copy_engine_refusal(const AttentionProblem& problem) {
  std::string refusal = copy_engine_refusal("q", q_shape(problem));
  if (refusal.empty()) refusal = copy_engine_refusal("k", k_shape(problem));
  if (refusal.empty()) refusal = copy_engine_refusal("v", v_shape(problem));
  return refusal;
}

}  // namespace tilewright
