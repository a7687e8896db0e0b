// src/plan/copy_engine.h: which operands Hopper's copy engine (TMA) can read.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "tilewright/attention.h"

namespace tilewright {

/// An operand as the copy engine sees it.
struct OperandShape {
  DType dtype = DType::bf16;
  std::int64_t batch = 0;  ///< 1 when packed
  std::int64_t rows = 0;
  std::int64_t heads = 0;
  std::int64_t dim = 0;
  Strides strides;
  std::int64_t alignment_bytes = 0;  ///< promised of the address
};

OperandShape q_shape(const AttentionProblem& problem);
OperandShape k_shape(const AttentionProblem& problem);
OperandShape v_shape(const AttentionProblem& problem);

/// An axis other than the head dim, nearest first: tokens, heads, batch.
struct OuterAxis {
  const char* name;
  std::int64_t extent;
  std::int64_t stride;
};
std::array<OuterAxis, 3> outer_axes(const OperandShape& shape);

/// The copy engine's own limits, in bytes.
inline constexpr std::int64_t kCopyEngineAlignment = 16;

/// Empty when the copy engine can read the operand; else why it cannot, naming `operand`.
std::string copy_engine_refusal(std::string_view operand, const OperandShape& shape);

/// The same for q, k and v together: the first refusal.
std::string copy_engine_refusal(const AttentionProblem& problem);

}  // namespace tilewright
