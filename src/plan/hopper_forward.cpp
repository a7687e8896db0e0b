// src/plan/hopper_forward.cpp: which Hopper forward kernel runs a problem, what that family
// refuses, and the workspace it needs.
#include "plan/hopper_forward.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "plan/copy_engine.h"
#include "plan/traffic.h"

namespace tilewright {
namespace {

// Kernels count tokens, heads and batches in 32 bits; offsets in 64. A mask's band reaches twice a
// sequence's queries and keys from the diagonal, and rows of the last tile lie beyond the last one.
constexpr std::int64_t kExtentLimit = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t kTokenLimit = (std::int64_t{1} << 28) - 1;
constexpr std::int64_t kPackedLimit = kExtentLimit - (1 << 10);

Status refuse(std::string message) {
  return {StatusCode::unsupported, std::move(message)};
}

bool on_host(const Lengths& lengths) {
  return lengths.kind != LengthKind::fixed && lengths.space == MemorySpace::host;
}

}  // namespace

Status check_hopper_forward(const AttentionProblem& problem) {
  const AttentionSpec& spec = problem.spec();
  if (spec.dtype != DType::bf16 && spec.dtype != DType::f16) {
    return refuse(
        fmt::format("dtype is {}; accepted by hopper_forward: bf16, f16", name(spec.dtype)));
  }
  if (spec.bias.kind != BiasKind::none) {
    return refuse("bias is given; accepted by hopper_forward: none");
  }
  if (on_host(spec.q_lengths)) {
    return refuse("q_lengths.space is host; accepted by hopper_forward: device");
  }
  if (on_host(spec.kv_lengths)) {
    return refuse("kv_lengths.space is host; accepted by hopper_forward: device");
  }
  struct Extent {
    const char* name;
    std::int64_t value;
    std::int64_t limit;
  };
  for (const Extent& extent :
       {Extent{"batch", spec.batch, kExtentLimit},
        Extent{"q_len", spec.q_lengths.max_tokens, kTokenLimit},
        Extent{"kv_len", spec.kv_lengths.max_tokens, kTokenLimit},
        Extent{"q_lengths.total_tokens", spec.q_lengths.total_tokens, kPackedLimit},
        Extent{"kv_lengths.total_tokens", spec.kv_lengths.total_tokens, kPackedLimit}}) {
    if (extent.value > extent.limit) {
      return refuse(fmt::format("{} is {}; accepted by hopper_forward: up to {}", extent.name,
                                extent.value, extent.limit));
    }
  }
  return {};
}

HopperDims hopper_dims(std::int64_t qk_dim, std::int64_t v_dim) {
  const int qk = schedule::native_dim(static_cast<int>(qk_dim));
  const int v = schedule::native_dim(static_cast<int>(v_dim));
  if (qk == 192 && v <= 128) return {192, 128};
  const int both = std::max(qk, v);
  return {both, both};
}

std::int64_t hopper_packed_heads(const AttentionProblem& problem) {
  if (!schedule::can_pack_heads(hopper_specialisation(problem, ForwardPlan{}))) return 1;
  const std::int64_t group = std::max<std::int64_t>(problem.group(), 1);
  std::int64_t heads = std::min<std::int64_t>(group, schedule::kRowsPerConsumer);
  while (group % heads != 0) --heads;
  return heads;
}

bool hopper_banded(const AttentionProblem& problem) {
  const Mask& mask = problem.spec().mask;
  return mask.causal || mask.window_left >= 0 || mask.window_right >= 0;
}

schedule::HopperForwardSpecialisation hopper_specialisation(const AttentionProblem& problem,
                                                            const ForwardPlan& forward) {
  const AttentionSpec& spec = problem.spec();
  const HopperDims dims = hopper_dims(spec.qk_dim, spec.v_dim);
  schedule::HopperForwardSpecialisation s;
  s.element =
      spec.dtype == DType::bf16 ? schedule::HopperElement::bf16 : schedule::HopperElement::f16;
  s.qk_dim = dims.qk_dim;
  s.v_dim = dims.v_dim;
  s.tile = {static_cast<int>(forward.tile.q_rows), static_cast<int>(forward.tile.kv_rows),
            static_cast<int>(forward.stages)};
  s.banded = hopper_banded(problem);
  s.softcap = spec.softcap > 0;
  s.alibi = spec.alibi != PerHead::none;
  s.copy_producer = !copy_engine_refusal(problem).empty();
  s.f32_output = forward.kv_splits > 1 || problem.o_dtype() == DType::f32;
  s.p_in_shared = forward.p_in_shared;
  return s;
}

HopperWorkspace hopper_workspace(const AttentionProblem& problem, std::int64_t kv_splits) {
  HopperWorkspace workspace{kHopperControlBytes, kHopperControlBytes, kHopperControlBytes};
  if (kv_splits <= 1) return workspace;
  const std::int64_t rows = problem.lse_rows() * kv_splits;
  workspace.partial_lse_offset += rows * problem.spec().v_dim * 4;
  workspace.total_bytes = workspace.partial_lse_offset + rows * 4;
  return workspace;
}

std::int64_t hopper_tile_tokens(const ForwardPlan& forward) {
  TrafficShape shape;
  shape.packed_heads = forward.packed_heads;
  return tile_tokens(shape, forward.tile);
}

std::int64_t hopper_tiles(const AttentionProblem& problem, const ForwardPlan& forward) {
  const AttentionSpec& spec = problem.spec();
  const std::int64_t tokens = hopper_tile_tokens(forward);
  const Lengths& lengths = spec.q_lengths;
  std::int64_t tiles = spec.batch * ((lengths.max_tokens + tokens - 1) / tokens);
  if (lengths.kind == LengthKind::cumulative) {
    // Each sequence wastes at most one tile.
    tiles = std::min(tiles, lengths.total_tokens / tokens + spec.batch);
  }
  return tiles * (spec.heads / forward.packed_heads) * forward.kv_splits;
}

}  // namespace tilewright
