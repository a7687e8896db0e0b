// cli/operands.h: turns arrays from files into an attention problem and its addresses.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "files/array.h"
#include "tilewright/attention.h"
#include "tilewright/status.h"

namespace tilewright::cli {

/// Axes of arrays that hold heads: batch, sequence, head, dim.
enum class Layout : std::uint8_t { bshd, bhsd };

/// Where each array of a call is; empty: not given.
struct InputPaths {
  std::string input;  ///< .safetensors with q, k and v
  std::string q, k, v;
  std::string q_lengths, kv_lengths, alibi, sinks, bias;
};

/// Operands of one call, read and checked against each other.
struct Operands {
  AttentionSpec spec;        ///< all but scores, mask and the type of o
  AttentionTensors tensors;  ///< inputs alone
  std::vector<std::int64_t> o_shape;
  std::vector<std::int64_t> lse_shape;
  std::int64_t input_bytes = 0;
  std::vector<std::string> notes;  ///< what a caller should know, such as rounded values

  std::vector<std::int32_t> q_lengths, kv_lengths;  ///< as the backend reads them
  std::vector<float> alibi, sinks;
  std::vector<files::Array> arrays;  ///< keeps the bytes alive
};

/// Every refusal names flag, file, field, value and what is accepted.
Result<std::unique_ptr<Operands>> read_operands(const InputPaths& paths, Layout layout,
                                                bool packed);

/// Floating-point operations of the sequences as they are, not of their bounds.
double flops_of(const AttentionProblem& problem, const Operands& operands);

}  // namespace tilewright::cli
