// src/schedule/cpu_forward.h: the CPU forward family: legal tiles and the bytes a core's tile set
// needs.
//
// Freestanding and constexpr: the one owner of these facts, read by the planner and the kernels.
#pragma once

#include "schedule/mask_rule.h"

namespace tilewright::schedule {

/// One core's working set for a q_rows x kv_rows tile, in bytes. Operands are widened to fp32.
struct CpuForwardFootprint {
  Index q_bytes = 0;      ///< packed query tile
  Index k_bytes = 0;      ///< packed key tile
  Index v_bytes = 0;      ///< packed value tile
  Index score_bytes = 0;  ///< S, turned into P in place
  Index o_bytes = 0;      ///< fp32 accumulator
  Index row_bytes = 0;    ///< running max and sum

  constexpr Index total_bytes() const {
    return q_bytes + k_bytes + v_bytes + score_bytes + o_bytes + row_bytes;
  }
};

constexpr CpuForwardFootprint cpu_forward_footprint(Index q_rows, Index kv_rows, Index qk_dim,
                                                    Index v_dim) {
  constexpr Index kElement = 4;
  return {q_rows * qk_dim * kElement,  kv_rows * qk_dim * kElement, kv_rows * v_dim * kElement,
          q_rows * kv_rows * kElement, q_rows * v_dim * kElement,   q_rows * 2 * kElement};
}

}  // namespace tilewright::schedule
