// kernels/attention/hopper_forward_producer.h: the producer warpgroup: it schedules, and loads Q, K
// and V.
#pragma once

#include "kernels/attention/hopper_forward_block.h"
#include "kernels/ptx/fence.h"
#include "kernels/ptx/mbarrier.h"
#include "kernels/ptx/tma.h"
#include "kernels/tile/copy.h"

namespace tilewright::kernels {

/// Fills the rings: one thread with TMA, or three warps with plain copies.
class Loader {
 public:
  Loader(const HopperForwardParams& params, const Shared& shared)
      : params_(params), shared_(shared), keep_(l2_evict_last()), stream_(l2_evict_first()) {}

  /// In the order in which the consumers will want them.
  void load(const WorkItem& item) {
    const int first = item.first;
    int tile = item.end - 1;
    if (tile < first + kDrawAheadTiles) barrier_arrive(shared_.near_end());
    if (tile < first) return;
    load_k(item, tile);
    load_q(item);
    for (; tile > first; --tile) {
      if (tile == first + kDrawAheadTiles) barrier_arrive(shared_.near_end());
      load_k(item, tile - 1);
      load_v(item, tile);
    }
    load_v(item, first);
  }

 private:
  void load_q(const WorkItem& item) {
    const schedule::HeadPack pack = head_pack<kSpec>(params_);
    for (int consumer = 0; consumer < kConsumers; ++consumer) {
      const Ring<1> ring = shared_.q_ring(consumer);
      ring.wait_empty(q_at_);
      const unsigned full = ring.full(0), tile = shared_.q(consumer);
      const int token = item.q_begin + consumer * pack.tokens;
      if constexpr (!kPacksHeads) {
        load_tile<schedule::kRowsPerConsumer, kSpec.qk_dim>(
            full, tile, params_.q_map, params_.q, params_.q_lengths, item, item.head,
            item.q_first_row, token, item.q_len, params_.qk_dim, stream_);
      } else {
        constexpr int kPanels = schedule::panels(kSpec.qk_dim);
        barrier_arrive_expect(full, kPanels * pack.heads * pack.tokens * QTile::kRowBytes);
#pragma unroll
        for (int panel = 0; panel < kPanels; ++panel) {
          tma_load_whole_axis(tile + panel * QTile::kPanelBytes, &params_.q_map, full,
                              panel * QTile::kPanelElements, item.q_first_row + token,
                              item.head / pack.heads, operand_batch(params_.q_lengths, item.batch),
                              stream_);
        }
      }
    }
    q_at_.advance();
  }

  void load_k(const WorkItem& item, int tile) {
    const Ring<kStages> ring = shared_.k_ring();
    ring.wait_empty(k_at_);
    load_tile<kKvRows, kSpec.qk_dim>(ring.full(k_at_.stage()), shared_.k(k_at_.stage()),
                                     params_.k_map, params_.k, params_.kv_lengths, item,
                                     item.kv_head, item.kv_first_row, tile * kKvRows, item.kv_len,
                                     params_.qk_dim, keep_);
    k_at_.advance();
  }

  void load_v(const WorkItem& item, int tile) {
    const Ring<kStages> ring = shared_.v_ring();
    ring.wait_empty(v_at_);
    load_tile<kKvRows, kSpec.v_dim>(ring.full(v_at_.stage()), shared_.v(v_at_.stage()),
                                    params_.v_map, params_.v, params_.kv_lengths, item,
                                    item.kv_head, item.kv_first_row, tile * kKvRows, item.kv_len,
                                    params_.v_dim, keep_);
    v_at_.advance();
  }

  /// Rows [row, row + Rows) of the sequence that begins at first_row and has `length` of them.
  template <int Rows, int Dim>
  void load_tile(unsigned full, unsigned tile, const TensorMap& map, const StridedTensor& tensor,
                 const SequenceLengths& lengths, const WorkItem& item, int head, int first_row,
                 int row, int length, int columns, unsigned long long policy) {
    constexpr int kPanels = schedule::panels(Dim);
    const int batch = operand_batch(lengths, item.batch);
    if constexpr (kSpec.copy_producer) {
      copy_tile<Rows, Dim, 32 * kLoadWarps>(shared_.generic(tile), tensor, batch,
                                            static_cast<long long>(first_row) + row, head,
                                            length - row, columns);
      fence_async_proxy();
      barrier_arrive(full);
    } else {
      barrier_arrive_expect(full, kPanels * SharedTile<Rows>::kPanelBytes);
#pragma unroll
      for (int panel = 0; panel < kPanels; ++panel) {
        tma_load(tile + panel * SharedTile<Rows>::kPanelBytes, &map, full,
                 panel * SharedTile<Rows>::kPanelElements, first_row + row, head, batch, policy);
      }
    }
  }

  const HopperForwardParams& params_;
  const Shared& shared_;
  unsigned long long keep_, stream_;
  Position k_at_, v_at_;
  RingPosition<1> q_at_;
};

/// The producer's first warp: publishes an item when the loader is near the end of the one before
/// it.
inline void schedule_work(const HopperForwardParams& params, const Shared& shared) {
  Scheduler<kSpec> scheduler(params);
  const Ring<Shared::kWorkSlots> ring = shared.work_ring();
  for (WorkPosition at;; at.advance()) {
    ring.wait_empty(at);
    if (at.passed > 0) barrier_wait(shared.near_end(), static_cast<int>(at.passed - 1) % 2);
    const bool valid = scheduler.next(shared.work(at.stage()));
    if (lane_index() == 0) barrier_arrive(ring.full(at.stage()));
    __syncwarp();
    if (!valid) break;
  }
  scheduler.finish();
}

/// The producer's other warps.
inline void load_work(const HopperForwardParams& params, const Shared& shared) {
  Loader loader(params, shared);
  const Ring<Shared::kWorkSlots> ring = shared.work_ring();
  const bool elected = kSpec.copy_producer || elect_one();
  for (WorkPosition at;; at.advance()) {
    ring.wait_full(at);
    const WorkItem& item = shared.work(at.stage());
    if (!item.valid) break;
    if (elected) loader.load(item);
    __syncwarp();
    ring.release(at, lane_index());
  }
}

}  // namespace tilewright::kernels
