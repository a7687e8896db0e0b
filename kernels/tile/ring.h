// kernels/tile/ring.h: a ring of shared-memory stages between one producer and the consumers.
//
// The producer waits for `empty`, fills, and completes `full`; a consumer waits for `full`, reads,
// and arrives at `empty`. Both step through the stages in the same order, for the whole life of the
// kernel.
#pragma once

#include "kernels/ptx/mbarrier.h"

namespace tilewright::kernels {

/// A place in a ring. One register: how many stages were passed.
template <int Stages>
struct RingPosition {
  static_assert((Stages & (Stages - 1)) == 0, "a power of two");
  unsigned passed = 0;

  int stage() const { return static_cast<int>(passed % Stages); }
  int parity() const {
    return static_cast<int>(passed / Stages % 2);
  }  ///< of the stage's current round
  void advance() { ++passed; }
};

/// The barriers of a ring, at a shared-memory address: Stages full ones, then Stages empty ones.
template <int Stages>
struct Ring {
  static constexpr int kBytes = 2 * Stages * 8;
  unsigned barriers;

  unsigned full(int stage) const { return barriers + 8 * stage; }
  unsigned empty(int stage) const { return barriers + 8 * (Stages + stage); }

  void init(int producer_arrivals, int consumer_arrivals) const {
    for (int stage = 0; stage < Stages; ++stage) {
      barrier_init(full(stage), producer_arrivals);
      barrier_init(empty(stage), consumer_arrivals);
    }
  }

  /// The first round finds every stage empty.
  void wait_empty(const RingPosition<Stages>& at) const {
    barrier_wait(empty(at.stage()), at.parity() ^ 1);
  }
  void wait_full(const RingPosition<Stages>& at) const {
    barrier_wait(full(at.stage()), at.parity());
  }

  /// By every lane of a consumer warp that has read the stage; counts once a warp.
  void release(const RingPosition<Stages>& at, int lane) const {
    if (lane == 0) barrier_arrive(empty(at.stage()));
  }
};

}  // namespace tilewright::kernels
