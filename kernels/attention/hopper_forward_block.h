// kernels/attention/hopper_forward_block.h: what one block of the Hopper forward kernel is, at
// compile time.
#pragma once

#include "kernels/attention/hopper_forward_params.h"
#include "kernels/ptx/element.h"
#include "kernels/ptx/thread.h"
#include "kernels/tile/ring.h"
#include "kernels/tile/shared_tile.h"
#include "kernels/tile/work.h"
#include "schedule/hopper_forward.h"

namespace tilewright::kernels {

using schedule::HopperElement;
using schedule::HopperForwardSpecialisation;

constexpr HopperForwardSpecialisation kSpec = schedule::hopper_forward_specialisation(
#include "hopper_forward_specialisation.inc"
);

template <HopperElement>
struct ElementOf {
  using Type = Bf16;
};
template <>
struct ElementOf<HopperElement::f16> {
  using Type = F16;
};
using Element = ElementOf<kSpec.element>::Type;

template <bool kF32>
struct StoredOf {
  using Type = unsigned short;
};
template <>
struct StoredOf<true> {
  using Type = float;
};

constexpr int kKvRows = kSpec.tile.kv_rows;
constexpr int kStages = kSpec.tile.stages;
constexpr int kConsumers = schedule::consumer_warpgroups(kSpec);
constexpr int kLoadWarps = kSpec.copy_producer ? 3 : 1;  // warp 0 of the producer schedules
constexpr int kDrawAheadTiles = 2;                       // hides the draw of the next item's number
constexpr bool kPacksHeads = schedule::packs_heads(kSpec);
constexpr bool kPingPong = schedule::ping_pong(kSpec);
constexpr int kPingPongBarrier = 1;  // and the next ones: one a consumer; 0 is the whole block's
constexpr int kPrivateBarrier = kPingPongBarrier + kConsumers;  // and the next ones, likewise

constexpr schedule::HopperForwardFootprint kFootprint = schedule::footprint(kSpec);
constexpr int kQBytes = kFootprint.q_bytes / kConsumers;
constexpr int kKStageBytes = kFootprint.k_bytes / kStages;
constexpr int kVStageBytes = kFootprint.v_bytes / kStages;
constexpr int kPBytes = kFootprint.p_bytes / kConsumers;

using QTile = SharedTile<schedule::kRowsPerConsumer>;  // one a consumer
using PTile = QTile;                                   // likewise, with p_in_shared
using KvTile = SharedTile<kKvRows>;
using Position = RingPosition<kStages>;

/// Shared memory: Q, then the K stages, the V stages, P if it is there, and what controls them.
struct Shared {
  static constexpr int kWorkSlots = 2;
  static constexpr int kK = kFootprint.q_bytes;
  static constexpr int kV = kK + kFootprint.k_bytes;
  static constexpr int kP = kV + kFootprint.v_bytes;
  static constexpr int kWork = kP + kFootprint.p_bytes;
  static constexpr int kKBarriers = kWork + kWorkSlots * static_cast<int>(sizeof(WorkItem));
  static constexpr int kVBarriers = kKBarriers + Ring<kStages>::kBytes;
  static constexpr int kQBarriers = kVBarriers + Ring<kStages>::kBytes;
  static constexpr int kWorkBarriers = kQBarriers + kConsumers * Ring<1>::kBytes;
  static constexpr int kNearEndBarrier = kWorkBarriers + Ring<kWorkSlots>::kBytes;
  static constexpr int kUnused = kNearEndBarrier + 8;
  static_assert(kUnused + 4 <= kWork + schedule::kControlBytes);

  char* base;
  unsigned address;

  explicit Shared(char* start) : base(start), address(shared_address(start)) {}

  unsigned q(int consumer) const { return address + consumer * kQBytes; }
  unsigned k(int stage) const { return address + kK + stage * kKStageBytes; }
  unsigned v(int stage) const { return address + kV + stage * kVStageBytes; }
  unsigned p(int consumer) const { return address + kP + consumer * kPBytes; }
  unsigned unused() const { return address + kUnused; }
  char* generic(unsigned place) const { return base + (place - address); }
  WorkItem& work(int slot) const { return reinterpret_cast<WorkItem*>(base + kWork)[slot]; }

  Ring<kStages> k_ring() const { return {address + kKBarriers}; }
  Ring<kStages> v_ring() const { return {address + kVBarriers}; }
  Ring<1> q_ring(int consumer) const { return {address + kQBarriers + consumer * Ring<1>::kBytes}; }
  Ring<kWorkSlots> work_ring() const { return {address + kWorkBarriers}; }

  /// A phase ends when the loader has no more than kDrawAheadTiles key tiles of an item to go.
  unsigned near_end() const { return address + kNearEndBarrier; }

  void init_barriers() const {
    const int producers = kSpec.copy_producer ? 32 * kLoadWarps : 1;
    k_ring().init(producers, 4 * kConsumers);
    v_ring().init(producers, 4 * kConsumers);
    for (int consumer = 0; consumer < kConsumers; ++consumer) q_ring(consumer).init(producers, 4);
    work_ring().init(1, 4 * kConsumers + kLoadWarps);
    barrier_init(near_end(), producers);
  }
};

using WorkPosition = RingPosition<Shared::kWorkSlots>;

}  // namespace tilewright::kernels
