// tilewright/attention.h: what to compute: the attention problem, checked once, without addresses.
//
//   score(i, j) = scale * q_i . k_j;              softcap: c * tanh(score / c)
//   score      += -slope[head] * |i + kv_len - q_len - j|  (ALiBi) + bias(i, j)
//   masked scores are -inf;  p = softmax(score), a sink adding exp(sink) to the denominator only
//   o_i = sum_j p(i, j) v_j;  lse_i = log of the denominator (natural logarithm)
//
// Method: exact softmax over tiles with running maximum and sum (Milakov and Gimelshein 2018, Dao
// et al. 2022, Dao 2023).
#pragma once

#include <cstdint>
#include <optional>

#include "tilewright/dtype.h"
#include "tilewright/mask.h"
#include "tilewright/status.h"
#include "tilewright/tensor.h"

namespace tilewright {

/// How the lengths of the sequences in a batch are given.
enum class LengthKind : std::uint8_t {
  fixed = 0,         ///< Every sequence has the bound's length.
  per_sequence = 1,  ///< Padded: int32 [batch] lengths at run; operands keep [batch, bound, ...].
  cumulative = 2,  ///< Packed: int32 [batch + 1] offsets at run; operands are [tokens, heads, dim].
};

/// Where an array lives that is read at run.
enum class MemorySpace : std::uint8_t { host = 0, device = 1 };

/// Lengths of one side (queries or keys). Contents of length arrays are read only when running, by
/// the backend that runs, and are clamped to the bounds given here.
struct Lengths {
  LengthKind kind = LengthKind::fixed;
  std::int64_t max_tokens = 0;    ///< q_len or kv_len: the length, or the longest sequence's bound
  std::int64_t total_tokens = 0;  ///< rows of the packed buffer (cumulative only)
  MemorySpace space = MemorySpace::host;

  bool operator==(const Lengths&) const = default;
};

/// A vector of one fp32 number a head: absent, [heads], or [batch, heads].
enum class PerHead : std::uint8_t { none = 0, per_head = 1, per_batch_head = 2 };

enum class BiasKind : std::uint8_t {
  none = 0,
  additive = 1,  ///< f32, bf16 or f16, added to the score
  boolean = 2,   ///< one byte, zero means masked
};

/// An optional bias over [batch, heads, q, kv]; stride 0 broadcasts.
struct Bias {
  BiasKind kind = BiasKind::none;
  DType dtype = DType::f32;  ///< of an additive bias
  std::int64_t batch_stride = 0;
  std::int64_t head_stride = 0;
  std::int64_t q_stride = 0;
  std::int64_t kv_stride = 1;

  bool operator==(const Bias&) const = default;
};

/// Everything a caller states about a call except addresses. Fill it in, then
/// AttentionProblem::create.
struct AttentionSpec {
  std::int64_t batch = 1;
  std::int64_t heads = 1;     ///< query heads
  std::int64_t kv_heads = 1;  ///< divides heads; query head h reads kv head h / (heads / kv_heads)
  Lengths q_lengths;
  Lengths kv_lengths;
  std::int64_t qk_dim = 0;  ///< 1..256
  std::int64_t v_dim = 0;   ///< 1..256; 0: qk_dim

  DType dtype = DType::f32;      ///< of q, k and v: f32, bf16 or f16
  std::optional<DType> o_dtype;  ///< dtype (the default) or f32
  Operand q, k, v, o;

  std::optional<double> scale;  ///< any finite value; unset: 1 / sqrt(qk_dim)
  double softcap = 0;           ///< > 0: c in c * tanh(score / c); 0: none
  Mask mask;
  PerHead alibi = PerHead::none;
  PerHead sinks = PerHead::none;
  Bias bias;

  bool operator==(const AttentionSpec&) const = default;
};

/// A spec that has been checked, with every default filled in. There is no unchecked one.
class AttentionProblem {
 public:
  /// invalid_argument names the field, its value and what is accepted.
  static Result<AttentionProblem> create(const AttentionSpec& spec);

  /// The spec with v_dim, o_dtype, scale and strides set, and a window that bounds nothing dropped.
  const AttentionSpec& spec() const noexcept { return spec_; }

  std::int64_t q_len() const noexcept { return spec_.q_lengths.max_tokens; }
  std::int64_t kv_len() const noexcept { return spec_.kv_lengths.max_tokens; }
  /// Query heads that share one kv head.
  std::int64_t group() const noexcept { return spec_.heads / spec_.kv_heads; }
  double scale() const noexcept { return *spec_.scale; }
  DType o_dtype() const noexcept { return *spec_.o_dtype; }
  const Strides& q() const noexcept { return *spec_.q.strides; }
  const Strides& k() const noexcept { return *spec_.k.strides; }
  const Strides& v() const noexcept { return *spec_.v.strides; }
  const Strides& o() const noexcept { return *spec_.o.strides; }
  /// Rows of the LSE array in all: batch * heads * q_len, or heads * total q tokens when packed.
  std::int64_t lse_rows() const noexcept;
  /// 2 * (qk_dim + v_dim) for every visible score, at the length bounds (packed: the most that the
  /// bounds allow). The standard count: exponentials and rescaling are not included.
  double flops() const noexcept;
  /// Scores that the mask leaves visible, over the whole batch, at the length bounds.
  double visible_scores() const noexcept;

  bool operator==(const AttentionProblem&) const = default;

 private:
  explicit AttentionProblem(const AttentionSpec& spec) : spec_(spec) {}
  AttentionSpec spec_;
};

/// The addresses of one call, for a problem that says how each lies in memory.
struct AttentionTensors {
  const void* q = nullptr;
  const void* k = nullptr;
  const void* v = nullptr;
  void* o = nullptr;
  float* lse = nullptr;  ///< [batch, heads, q_len], packed [heads, total q tokens]; may be null
  const std::int32_t* q_lengths = nullptr;   ///< [batch], or [batch + 1] offsets when packed
  const std::int32_t* kv_lengths = nullptr;  ///< likewise
  const float* alibi_slopes = nullptr;       ///< [heads] or [batch, heads]
  const float* sinks = nullptr;  ///< [heads] or [batch, heads], natural-log logits, unscaled
  const void* bias = nullptr;
};

}  // namespace tilewright
