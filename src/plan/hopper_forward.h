// src/plan/hopper_forward.h: which Hopper forward kernel runs a problem, what that family refuses,
// and the workspace it needs.
#pragma once

#include <cstdint>

#include "schedule/hopper_forward.h"
#include "tilewright/plan.h"

namespace tilewright {

/// ok, or unsupported naming the field that the family does not take.
Status check_hopper_forward(const AttentionProblem& problem);

/// The kernel's head dims for a problem's: native ones, of pairs that are shipped precompiled.
struct HopperDims {
  int qk_dim = 0;
  int v_dim = 0;
};
HopperDims hopper_dims(std::int64_t qk_dim, std::int64_t v_dim);

/// How many query heads can share a query tile: those of a group, or the largest part of it that a
/// consumer's rows hold; 1 where kernels cannot.
std::int64_t hopper_packed_heads(const AttentionProblem& problem);

/// Whether the mask is compiled in: causal or windowed.
bool hopper_banded(const AttentionProblem& problem);

/// Everything that is compiled in, for a tile, stages and splits. The problem must not be refused.
schedule::HopperForwardSpecialisation hopper_specialisation(const AttentionProblem& problem,
                                                            const ForwardPlan& forward);

/// Offsets into the workspace, in bytes: the control block, then the partial results of the splits.
struct HopperWorkspace {
  std::int64_t partial_o_offset = 0;    ///< fp32 [splits, rows of o, heads, v_dim]
  std::int64_t partial_lse_offset = 0;  ///< fp32 [splits, lse_rows]
  std::int64_t total_bytes = 0;
};
inline constexpr std::int64_t kHopperControlBytes = 256;
HopperWorkspace hopper_workspace(const AttentionProblem& problem, std::int64_t kv_splits);

/// Tokens of a query tile, whose rows its packed heads share.
std::int64_t hopper_tile_tokens(const ForwardPlan& forward);

/// Tiles of queries (times heads, batch and splits) at the length bounds: no more are ever run.
std::int64_t hopper_tiles(const AttentionProblem& problem, const ForwardPlan& forward);

}  // namespace tilewright
