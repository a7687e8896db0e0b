// src/problem/problem.cpp: checks an AttentionSpec once and fills in its defaults.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>

#include "schedule/mask_rule.h"
#include "tilewright/attention.h"

namespace tilewright {
namespace {

constexpr std::int64_t kMaxDim = 256;
// Extents are bounded so that every product of a few of them stays within 64 bits.
constexpr std::int64_t kMaxTokens = std::int64_t{1} << 40;
constexpr std::int64_t kMaxHeads = std::int64_t{1} << 24;
constexpr std::int64_t kMaxBatch = std::int64_t{1} << 31;
constexpr double kMaxRows = 0x1p48;
constexpr std::int64_t kMaxStride = std::int64_t{1} << 56;

Status invalid(std::string message) {
  return {StatusCode::invalid_argument, std::move(message)};
}

Status check_range(std::string_view field, std::int64_t value, std::int64_t low,
                   std::int64_t high) {
  if (value >= low && value <= high) return {};
  return invalid(fmt::format("{} is {}; accepted: {} to {}", field, value, low, high));
}

// True when an enumerator read from outside (the C ABI) is one that we know.
template <typename Enum>
Status check_enum(std::string_view field, Enum value, int count, std::string_view accepted) {
  const int number = static_cast<int>(value);
  if (number >= 0 && number < count) return {};
  return invalid(fmt::format("{} is {}; accepted: {}", field, number, accepted));
}

bool is_float(DType dtype) {
  return dtype == DType::f32 || dtype == DType::bf16 || dtype == DType::f16;
}

Status check_lengths(std::string_view side, const Lengths& lengths, std::int64_t batch) {
  const std::string field(side);
  Status status =
      check_enum(field + "_lengths.kind", lengths.kind, 3, "0 fixed, 1 per_sequence, 2 cumulative");
  if (status.ok()) {
    status = check_enum(field + "_lengths.space", lengths.space, 2, "0 host, 1 device");
  }
  if (status.ok()) status = check_range(field + "_len", lengths.max_tokens, 0, kMaxTokens);
  if (!status.ok()) return status;
  if (lengths.kind == LengthKind::cumulative) {
    // Offsets are int32.
    return check_range(field + "_lengths.total_tokens", lengths.total_tokens, 0,
                       std::numeric_limits<std::int32_t>::max());
  }
  if (lengths.total_tokens != 0) {
    return invalid(
        fmt::format("{}_lengths.total_tokens is {}; accepted: 0 unless lengths are "
                    "cumulative (batch {} fixes it)",
                    field, lengths.total_tokens, batch));
  }
  return {};
}

struct Axis {
  const char* name;
  std::int64_t stride, extent;
};

// No offset along an axis leaves 64 bits, nor does the sum of four.
Status check_axis(std::string_view field, const Axis& axis) {
  if (axis.stride < -kMaxStride || axis.stride > kMaxStride) {
    return invalid(fmt::format("{} is {}; accepted: -2^56 to 2^56", field, axis.stride));
  }
  if (axis.extent > 1 &&
      std::abs(axis.stride) > std::numeric_limits<std::int64_t>::max() / 16 / axis.extent) {
    return invalid(fmt::format("{} is {} over {} elements; accepted: offsets below 2^59", field,
                               axis.stride, axis.extent));
  }
  return {};
}

Status check_operand(std::string_view name, const Operand& operand, DType dtype, bool output,
                     std::int64_t rows, std::int64_t heads, std::int64_t batch, std::int64_t dim) {
  const std::int64_t alignment = operand.alignment_bytes;
  const auto element = static_cast<std::int64_t>(size_bytes(dtype));
  if (alignment < element || alignment > 4096 || (alignment & (alignment - 1)) != 0) {
    return invalid(
        fmt::format("{}.alignment_bytes is {}; accepted: 0 or a power of two from {} to 4096", name,
                    alignment, element));
  }
  const Strides& strides = *operand.strides;
  const bool empty = batch == 0 || rows == 0;  // contiguous strides are then 0
  for (const Axis& axis : {Axis{"batch", strides.batch, batch}, Axis{"token", strides.token, rows},
                           Axis{"head", strides.head, heads}, Axis{"dim", strides.dim, dim}}) {
    const std::string field = fmt::format("{}.strides.{}", name, axis.name);
    Status status = check_axis(field, axis);
    if (!status.ok()) return status;
    if (output && !empty && axis.extent > 1 && axis.stride == 0) {
      return invalid(fmt::format(
          "{} is 0 over {} elements; accepted: nonzero, since an output is written once", field,
          axis.extent));
    }
  }
  return {};
}

Status check_bias(const AttentionSpec& spec) {
  const Bias& bias = spec.bias;
  Status status = check_enum("bias.kind", bias.kind, 3, "0 none, 1 additive, 2 boolean");
  if (!status.ok()) return status;
  if (bias.kind == BiasKind::additive && !is_float(bias.dtype)) {
    return invalid(fmt::format("bias.dtype is {}; accepted for an additive bias: f32, bf16, f16",
                               name(bias.dtype)));
  }
  for (const Axis& axis : {Axis{"bias.batch_stride", bias.batch_stride, spec.batch},
                           Axis{"bias.head_stride", bias.head_stride, spec.heads},
                           Axis{"bias.q_stride", bias.q_stride, spec.q_lengths.max_tokens},
                           Axis{"bias.kv_stride", bias.kv_stride, spec.kv_lengths.max_tokens}}) {
    status = check_axis(axis.name, axis);
    if (!status.ok()) return status;
  }
  return {};
}

// All rows of one side, over every head, and of dims up to kMaxDim, stay countable.
Status check_rows(std::string_view side, const AttentionSpec& spec, const Lengths& lengths) {
  const auto batch_heads = static_cast<double>(spec.batch) * static_cast<double>(spec.heads);
  const double all =
      std::max(batch_heads * static_cast<double>(lengths.max_tokens),
               static_cast<double>(spec.heads) * static_cast<double>(lengths.total_tokens));
  if (all <= kMaxRows) return {};
  return invalid(
      fmt::format("batch {} x heads {} x {}_len {} is {:.3g} rows; accepted: at most "
                  "2^48",
                  spec.batch, spec.heads, side, lengths.max_tokens, all));
}

Status check_shapes(const AttentionSpec& spec) {
  Status status = check_range("batch", spec.batch, 0, kMaxBatch);
  if (status.ok()) status = check_range("heads", spec.heads, 1, kMaxHeads);
  if (status.ok()) status = check_range("kv_heads", spec.kv_heads, 1, kMaxHeads);
  if (status.ok() && spec.heads % spec.kv_heads != 0) {
    status = invalid(fmt::format("kv_heads is {}; accepted: a divisor of heads, which is {}",
                                 spec.kv_heads, spec.heads));
  }
  if (status.ok()) status = check_range("qk_dim", spec.qk_dim, 1, kMaxDim);
  if (status.ok()) status = check_range("v_dim", spec.v_dim, 1, kMaxDim);
  if (status.ok()) status = check_lengths("q", spec.q_lengths, spec.batch);
  if (status.ok()) status = check_lengths("kv", spec.kv_lengths, spec.batch);
  if (status.ok()) status = check_rows("q", spec, spec.q_lengths);
  if (status.ok()) status = check_rows("kv", spec, spec.kv_lengths);
  return status;
}

Status check_types(const AttentionSpec& spec) {
  if (!is_float(spec.dtype)) {
    return invalid(fmt::format("dtype is {} ({}); accepted: f32, bf16, f16", name(spec.dtype),
                               static_cast<int>(spec.dtype)));
  }
  if (*spec.o_dtype != spec.dtype && *spec.o_dtype != DType::f32) {
    return invalid(fmt::format("o_dtype is {} ({}); accepted: {} or f32", name(*spec.o_dtype),
                               static_cast<int>(*spec.o_dtype), name(spec.dtype)));
  }
  return {};
}

Status check_score(const AttentionSpec& spec) {
  if (!std::isfinite(*spec.scale) || !std::isfinite(static_cast<float>(*spec.scale))) {
    return invalid(fmt::format("scale is {}; accepted: any finite fp32 value", *spec.scale));
  }
  const auto cap = static_cast<float>(spec.softcap);
  if (!(spec.softcap >= 0) || !std::isfinite(cap) || (spec.softcap > 0 && cap == 0)) {
    return invalid(fmt::format("softcap is {}; accepted: 0 (none) or a positive finite fp32 value",
                               spec.softcap));
  }
  Status status = check_enum("mask.diagonal", spec.mask.diagonal, 2, "0 bottom_right, 1 top_left");
  if (!status.ok()) return status;
  constexpr std::int64_t kMaxWindow = std::numeric_limits<std::int64_t>::max();
  status = check_range("mask.window_left", spec.mask.window_left, -1, kMaxWindow);
  if (status.ok())
    status = check_range("mask.window_right", spec.mask.window_right, -1, kMaxWindow);
  if (status.ok()) {
    status = check_enum("alibi", spec.alibi, 3, "0 none, 1 per_head, 2 per_batch_head");
  }
  if (status.ok()) {
    status = check_enum("sinks", spec.sinks, 3, "0 none, 1 per_head, 2 per_batch_head");
  }
  if (status.ok()) status = check_bias(spec);
  return status;
}

std::int64_t rows(const Lengths& lengths) {
  return lengths.kind == LengthKind::cumulative ? lengths.total_tokens : lengths.max_tokens;
}

void fill_operand(Operand& operand, DType dtype, const Lengths& lengths, std::int64_t heads,
                  std::int64_t dim) {
  if (!operand.strides) operand.strides = Strides::bshd(rows(lengths), heads, dim);
  if (operand.alignment_bytes == 0) {
    operand.alignment_bytes = static_cast<std::int64_t>(size_bytes(dtype));
  }
}

AttentionSpec with_defaults(AttentionSpec spec) {
  if (spec.v_dim == 0) spec.v_dim = spec.qk_dim;
  if (!spec.o_dtype) spec.o_dtype = spec.dtype;
  if (!spec.scale) spec.scale = 1.0 / std::sqrt(static_cast<double>(spec.qk_dim));
  return spec;
}

void fill_layout(AttentionSpec& spec) {
  fill_operand(spec.q, spec.dtype, spec.q_lengths, spec.heads, spec.qk_dim);
  fill_operand(spec.k, spec.dtype, spec.kv_lengths, spec.kv_heads, spec.qk_dim);
  fill_operand(spec.v, spec.dtype, spec.kv_lengths, spec.kv_heads, spec.v_dim);
  fill_operand(spec.o, *spec.o_dtype, spec.q_lengths, spec.heads, spec.v_dim);
}

Status check_layout(const AttentionSpec& spec) {
  const std::int64_t q_rows = rows(spec.q_lengths);
  const std::int64_t kv_rows = rows(spec.kv_lengths);
  const bool q_packed = spec.q_lengths.kind == LengthKind::cumulative;
  const bool kv_packed = spec.kv_lengths.kind == LengthKind::cumulative;
  const std::int64_t q_batch = q_packed ? 1 : spec.batch;
  const std::int64_t kv_batch = kv_packed ? 1 : spec.batch;
  Status status =
      check_operand("q", spec.q, spec.dtype, false, q_rows, spec.heads, q_batch, spec.qk_dim);
  if (status.ok()) {
    status = check_operand("k", spec.k, spec.dtype, false, kv_rows, spec.kv_heads, kv_batch,
                           spec.qk_dim);
  }
  if (status.ok()) {
    status =
        check_operand("v", spec.v, spec.dtype, false, kv_rows, spec.kv_heads, kv_batch, spec.v_dim);
  }
  if (status.ok()) {
    status =
        check_operand("o", spec.o, *spec.o_dtype, true, q_rows, spec.heads, q_batch, spec.v_dim);
  }
  return status;
}

// A window that reaches past the farthest key from any diagonal bounds nothing.
std::int64_t normal_window(std::int64_t window, const AttentionSpec& spec) {
  return window >= spec.q_lengths.max_tokens + spec.kv_lengths.max_tokens ? -1 : window;
}

}  // namespace

Result<AttentionProblem> AttentionProblem::create(const AttentionSpec& given) {
  AttentionSpec spec = with_defaults(given);
  Status status = check_shapes(spec);
  if (status.ok()) status = check_types(spec);
  if (status.ok()) status = check_score(spec);
  if (!status.ok()) return status;
  fill_layout(spec);
  status = check_layout(spec);
  if (!status.ok()) return status;
  spec.mask.window_left = normal_window(spec.mask.window_left, spec);
  spec.mask.window_right = normal_window(spec.mask.window_right, spec);
  return AttentionProblem(spec);
}

std::int64_t AttentionProblem::lse_rows() const noexcept {
  if (spec_.q_lengths.kind == LengthKind::cumulative) {
    return spec_.heads * spec_.q_lengths.total_tokens;
  }
  return spec_.batch * spec_.heads * q_len();
}

double AttentionProblem::visible_scores() const noexcept {
  using schedule::Index;
  const Mask& mask = spec_.mask;
  const schedule::MaskRule rule = schedule::make_mask_rule(q_len(), kv_len(), mask.causal,
                                                           mask.diagonal == Diagonal::bottom_right,
                                                           mask.window_left, mask.window_right);
  // Both ends of a row's interval are piecewise linear in the row, so few pieces cover any length.
  double scores = 0;
  const auto end_sum = [&](Index shift) {
    // Sum over rows of clamp(row + shift, 0, kv_len).
    const Index rising = schedule::clamp(-shift, 0, q_len());
    const Index full = schedule::clamp(kv_len() - shift, rising, q_len());
    const auto first = static_cast<double>(rising + shift);
    const auto last = static_cast<double>(full - 1 + shift);
    const double middle =
        full > rising ? (first + last) * static_cast<double>(full - rising) / 2 : 0;
    return middle + static_cast<double>(q_len() - full) * static_cast<double>(kv_len());
  };
  // A row's interval is empty where its high end lies below its low end; the band's width says so.
  if (rule.high >= rule.low) scores = end_sum(rule.high + 1) - end_sum(rule.low);
  return scores * static_cast<double>(spec_.heads) * static_cast<double>(spec_.batch);
}

double AttentionProblem::flops() const noexcept {
  return 2.0 * static_cast<double>(spec_.qk_dim + spec_.v_dim) * visible_scores();
}

}  // namespace tilewright
