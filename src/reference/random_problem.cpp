// src/reference/random_problem.cpp: draws random problems over every feature.
#include "reference/random_problem.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "reference/random.h"

namespace tilewright::reference {
namespace {

// Lengths where tiles end, and primes, as often as any other.
std::int64_t random_tokens(Random& random, std::int64_t most) {
  std::int64_t tokens = random.integer(1, most);
  if (random.chance(0.5)) {
    tokens = random.choose<std::int64_t>({1,   2,   3,   15,  16,  17,  31,  63,  64,  65, 97,
                                          127, 128, 129, 191, 192, 193, 251, 255, 256, 257});
  }
  if (random.chance(0.03)) tokens = 0;
  return std::min(tokens, most);
}

std::int64_t random_dim(Random& random, std::int64_t most) {
  std::int64_t dim = random.integer(1, most);
  if (random.chance(0.7)) {
    dim = random.choose<std::int64_t>(
        {1, 2, 3, 7, 8, 16, 32, 40, 59, 64, 64, 72, 80, 96, 111, 128, 128, 160, 192, 255, 256});
  }
  return std::min(dim, most);
}

Lengths random_lengths(Random& random, std::int64_t batch, std::int64_t most,
                       std::vector<std::int32_t>& values) {
  Lengths lengths;
  lengths.kind = random.choose(
      {LengthKind::fixed, LengthKind::fixed, LengthKind::per_sequence, LengthKind::cumulative});
  lengths.max_tokens = random_tokens(random, most);
  const auto one = [&] {
    return random.chance(0.25) ? 0 : random_tokens(random, std::max<std::int64_t>(most, 1));
  };
  if (lengths.kind == LengthKind::per_sequence) {
    // Some lie outside [0, max_tokens] and are clamped.
    for (std::int64_t b = 0; b < batch; ++b) {
      values.push_back(static_cast<std::int32_t>(random.chance(0.03) ? -7 : one()));
    }
  } else if (lengths.kind == LengthKind::cumulative) {
    // Tokens of nobody may lie before, after, and behind a sequence longer than the bound.
    std::int64_t end = random.chance(0.2) ? random.integer(1, 9) : 0;
    values.push_back(static_cast<std::int32_t>(end));
    std::int64_t longest = 0;
    for (std::int64_t b = 0; b < batch; ++b) {
      const std::int64_t tokens = one();
      longest = std::max(longest, tokens);
      end += tokens;
      values.push_back(static_cast<std::int32_t>(end));
    }
    lengths.total_tokens = end + (random.chance(0.2) ? random.integer(1, 9) : 0);
    if (random.chance(0.9)) lengths.max_tokens = longest + (random.chance(0.3) ? 5 : 0);
  }
  return lengths;
}

// Any order of the axes, gaps between neighbours, reversed axes; inputs may be expanded too.
Operand random_operand(Random& random, const AttentionSpec& spec, const Lengths& lengths,
                       std::int64_t heads, std::int64_t dim, bool output, std::int64_t element) {
  Operand operand;
  if (random.chance(0.2)) operand.alignment_bytes = random.choose<std::int64_t>({element, 16, 64});
  if (random.chance(0.3)) return operand;
  const bool packed = lengths.kind == LengthKind::cumulative;
  const std::int64_t rows = packed ? lengths.total_tokens : lengths.max_tokens;
  Strides strides;
  std::array<std::pair<std::int64_t*, std::int64_t>, 4> axes = {{{&strides.dim, dim},
                                                                 {&strides.head, heads},
                                                                 {&strides.token, rows},
                                                                 {&strides.batch, spec.batch}}};
  // The dim innermost more often than not, as callers have it.
  const std::int64_t first = random.chance(0.75) ? 1 : 0;
  for (std::int64_t i = first; i < 3; ++i) {
    std::swap(axes[static_cast<std::size_t>(i)],
              axes[static_cast<std::size_t>(random.integer(i, 3))]);
  }
  std::int64_t distance = random.chance(0.1) ? 2 : 1;
  for (const auto& [stride, extent] : axes) {
    *stride = distance;
    if (packed && stride == &strides.batch) {
      *stride = random.integer(-99999, 99999);  // not used
      continue;
    }
    if (!output && random.chance(0.08)) {
      *stride = 0;
      continue;
    }
    if (random.chance(0.1)) *stride = -distance;
    distance *= std::max<std::int64_t>(extent, 1) + (random.chance(0.2) ? random.integer(1, 3) : 0);
  }
  operand.strides = strides;
  return operand;
}

Bias random_bias(Random& random, const AttentionSpec& spec) {
  Bias bias;
  if (random.chance(0.7)) return bias;
  bias.kind = random.choose({BiasKind::additive, BiasKind::boolean});
  bias.dtype = random.choose({DType::f32, DType::bf16, DType::f16});
  std::int64_t distance = 1;
  struct Axis {
    std::int64_t* stride;
    std::int64_t extent;
  };
  for (const Axis& axis :
       {Axis{&bias.kv_stride, spec.kv_lengths.max_tokens},
        Axis{&bias.q_stride, spec.q_lengths.max_tokens}, Axis{&bias.head_stride, spec.heads},
        Axis{&bias.batch_stride, spec.batch}}) {
    *axis.stride = 0;
    if (random.chance(0.3)) continue;  // broadcast
    *axis.stride = random.chance(0.1) ? -distance : distance;
    distance *= std::max<std::int64_t>(axis.extent, 1) + (random.chance(0.2) ? 3 : 0);
  }
  return bias;
}

Mask random_mask(Random& random, std::int64_t most) {
  Mask mask;
  mask.causal = random.chance(0.4);
  mask.diagonal = random.choose({Diagonal::bottom_right, Diagonal::top_left});
  const auto window = [&]() -> std::int64_t {
    if (random.chance(0.6)) return -1;
    return random.chance(0.2) ? random.integer(0, 2) : random.integer(0, most);
  };
  mask.window_left = window();
  mask.window_right = window();
  return mask;
}

void random_score(Random& random, AttentionSpec& spec) {
  const double usual = 1 / std::sqrt(static_cast<double>(spec.qk_dim));
  if (random.chance(0.5)) {
    spec.scale = usual * random.choose({1.0, 100.0, 10000.0, -1.0, -100.0, 0.0, 0.37});
  }
  if (random.chance(0.2)) spec.softcap = random.choose({0.5, 15.0, 30.0, 50.0});
  const auto per_head = [&] {
    return random.choose(
        {PerHead::none, PerHead::none, PerHead::none, PerHead::per_head, PerHead::per_batch_head});
  };
  spec.alibi = per_head();
  spec.sinks = per_head();
}

Case draw(Random& random, const RandomLimits& limits) {
  Case what;
  AttentionSpec& spec = what.spec;
  spec.batch = random.integer(1, limits.max_batch);
  spec.kv_heads = random.integer(1, limits.max_heads);
  const std::int64_t group = random.chance(0.5) ? 1 : limits.max_heads / spec.kv_heads;
  spec.heads = spec.kv_heads * std::max<std::int64_t>(group, 1);
  spec.q_lengths = random_lengths(random, spec.batch, limits.max_tokens, what.q_lengths);
  spec.kv_lengths = random_lengths(random, spec.batch, limits.max_tokens, what.kv_lengths);
  spec.qk_dim = random_dim(random, limits.max_dim);
  spec.v_dim = random.chance(0.7) ? spec.qk_dim : random_dim(random, limits.max_dim);
  spec.dtype = random.choose({DType::f32, DType::bf16, DType::f16});
  spec.o_dtype = random.chance(0.3) ? DType::f32 : spec.dtype;
  const auto in_bytes = static_cast<std::int64_t>(size_bytes(spec.dtype));
  const auto o_bytes = static_cast<std::int64_t>(size_bytes(*spec.o_dtype));
  spec.q = random_operand(random, spec, spec.q_lengths, spec.heads, spec.qk_dim, false, in_bytes);
  spec.k =
      random_operand(random, spec, spec.kv_lengths, spec.kv_heads, spec.qk_dim, false, in_bytes);
  spec.v =
      random_operand(random, spec, spec.kv_lengths, spec.kv_heads, spec.v_dim, false, in_bytes);
  spec.o = random_operand(random, spec, spec.q_lengths, spec.heads, spec.v_dim, true, o_bytes);
  spec.mask = random_mask(random, limits.max_tokens);
  random_score(random, spec);
  spec.bias = random_bias(random, spec);
  return what;
}

double most_flops(const AttentionSpec& spec) {
  const auto size = [](std::int64_t n) { return static_cast<double>(n); };
  return 2 * size(spec.batch) * size(spec.heads) * size(spec.q_lengths.max_tokens) *
         size(spec.kv_lengths.max_tokens) * size(spec.qk_dim + spec.v_dim);
}

std::string_view name(LengthKind kind) {
  return kind == LengthKind::fixed          ? "fixed"
         : kind == LengthKind::per_sequence ? "per_sequence"
                                            : "cumulative";
}

std::string side(std::string_view label, const Lengths& lengths,
                 const std::vector<std::int32_t>& values) {
  std::string text = fmt::format(" {} {} {}", label, name(lengths.kind), lengths.max_tokens);
  if (lengths.kind == LengthKind::cumulative) text += fmt::format(" of {}", lengths.total_tokens);
  const std::size_t shown = std::min<std::size_t>(values.size(), 16);
  if (shown > 0) {
    text += fmt::format(
        " [{}{}]",
        fmt::join(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(shown), ","),
        shown < values.size() ? ",..." : "");
  }
  return text;
}

std::string operand(std::string_view label, const Operand& o) {
  std::string text;
  if (o.strides) {
    const Strides& s = *o.strides;
    text += fmt::format(" {}.strides {},{},{},{}", label, s.batch, s.token, s.head, s.dim);
  }
  if (o.alignment_bytes != 0) text += fmt::format(" {}.alignment {}", label, o.alignment_bytes);
  return text;
}

}  // namespace

Case random_case(std::uint64_t seed, const RandomLimits& limits) {
  Random random(seed);
  for (;;) {
    Case what = draw(random, limits);
    if (most_flops(what.spec) > limits.max_flops) continue;
    what.seed = seed;
    what.name = fmt::format("random {}", seed);
    return what;
  }
}

std::string to_text(const Case& what) {
  const AttentionSpec& s = what.spec;
  std::string text = fmt::format("{} (seed {}): batch {} heads {}/{}", what.name, what.seed,
                                 s.batch, s.heads, s.kv_heads);
  text += side("q", s.q_lengths, what.q_lengths) + side("kv", s.kv_lengths, what.kv_lengths);
  text += fmt::format(" dims {}/{} {}", s.qk_dim, s.v_dim, name(s.dtype));
  if (s.o_dtype) text += fmt::format(" o {}", name(*s.o_dtype));
  text += operand("q", s.q) + operand("k", s.k) + operand("v", s.v) + operand("o", s.o);
  if (s.scale) text += fmt::format(" scale {}", *s.scale);
  if (s.softcap != 0) text += fmt::format(" softcap {}", s.softcap);
  const Mask& mask = s.mask;
  if (mask.causal) text += " causal";
  if (mask.diagonal == Diagonal::top_left) text += " top_left";
  if (mask.window_left >= 0 || mask.window_right >= 0) {
    text += fmt::format(" window {},{}", mask.window_left, mask.window_right);
  }
  if (s.alibi != PerHead::none) text += fmt::format(" alibi {}", static_cast<int>(s.alibi));
  if (s.sinks != PerHead::none) text += fmt::format(" sinks {}", static_cast<int>(s.sinks));
  const Bias& bias = s.bias;
  if (bias.kind != BiasKind::none) {
    text += fmt::format(" bias {} {} strides {},{},{},{}",
                        bias.kind == BiasKind::boolean ? "boolean" : "additive", name(bias.dtype),
                        bias.batch_stride, bias.head_stride, bias.q_stride, bias.kv_stride);
  }
  return text;
}

}  // namespace tilewright::reference
