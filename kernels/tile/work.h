// kernels/tile/work.h: the order in which persistent blocks take query tiles, and what a tile's
// work is.
//
// Heads are walked in groups whose K and V stay in L2: those of all batches in one list, or, where
// lengths differ, batch by batch. Under a causal mask a group's longest tiles come first. Groups
// are of like size: a small last one would begin its longest tiles when the others are done. Blocks
// draw numbers from a counter in global memory, as late as hides the trip there: what a block has
// drawn no other can take from it when the work runs out.
#pragma once

#include "kernels/attention/hopper_forward_params.h"
#include "kernels/ptx/thread.h"
#include "kernels/tile/sequence_of.h"
#include "schedule/hopper_forward.h"
#include "schedule/share.h"
#include "schedule/tile_walk.h"

namespace tilewright::kernels {

/// One query tile of one head (and one split of its keys), as the scheduling warp hands it to the
/// others.
struct alignas(16) WorkItem {
  int valid;  ///< 0: there is no more work
  int batch;
  int head;  ///< the first of its pack
  int kv_head;
  int split;
  int q_begin;      ///< the tile's first token, within its sequence
  int q_first_row;  ///< the sequence's first row, within its operand
  int kv_first_row;
  int q_len;
  int kv_len;
  int mask_low;  ///< the mask's band, as in schedule::MaskRule
  int mask_high;
  int first;  ///< key tiles [first, end), of which those in [unmasked_first, unmasked_end)
  int end;    ///< need no mask
  int unmasked_first;
  int unmasked_end;

  schedule::MaskRule mask_rule() const { return {q_len, kv_len, mask_low, mask_high}; }
};

/// How query heads share a tile.
template <schedule::HopperForwardSpecialisation kSpec>
schedule::HeadPack head_pack(const HopperForwardParams& params) {
  if constexpr (schedule::packs_heads(kSpec)) return params.pack;
  return {};
}

/// Used by one whole warp of each block.
template <schedule::HopperForwardSpecialisation kSpec>
class Scheduler {
 public:
  explicit Scheduler(const HopperForwardParams& params)
      : params_(params),
        tile_tokens_(schedule::consumer_warpgroups(kSpec) * head_pack<kSpec>(params).tokens),
        head_packs_(params.heads / head_pack<kSpec>(params).heads) {}

  /// Writes the block's next work item; false if there is none. A block's first is its own number.
  bool next(WorkItem& item) {
    int rank = drawn_ ? draw() : static_cast<int>(blockIdx.x);
    drawn_ = true;
    int batch = 0;
    const bool valid = params_.q_lengths.kind == LengthKind::fixed
                           ? rank < tiles_of(0) * params_.batch
                           : (batch = find_batch(rank)) < params_.batch;
    if (lane_index() == 0) {
      item.valid = valid;
      if (valid) describe(item, batch, rank);
    }
    return valid;
  }

  /// After the last item: the last block to finish leaves the counters zero.
  void finish() const {
    if (lane_index() != 0) return;
    if (atomicAdd(&params_.control[1], 1) + 1 == static_cast<int>(gridDim.x)) {
      params_.control[0] = 0;
      params_.control[1] = 0;
    }
  }

 private:
  int draw() const {
    int number = 0;
    if (lane_index() == 0) number = atomicAdd(&params_.control[0], 1);
    return warp_uniform(number) + static_cast<int>(gridDim.x);
  }

  int query_tiles(int q_len) const { return (q_len + tile_tokens_ - 1) / tile_tokens_; }

  int tiles_of(int batch) const {
    const int q_len = static_cast<int>(sequence_of(params_.q_lengths, batch).tokens);
    return query_tiles(q_len) * head_packs_ * params_.splits;
  }

  /// The batch of tile `rank`, which becomes the tile's rank within it. Numbers only rise, so the
  /// search goes on from where the last one ended: 32 batches at a time, one a lane.
  int find_batch(int& rank) {
    while (first_batch_ < params_.batch) {
      const int batch = first_batch_ + lane_index();
      const int tiles = batch < params_.batch ? tiles_of(batch) : 0;
      int through = tiles;  // inclusive prefix sum over the lanes
      for (int distance = 1; distance < 32; distance *= 2) {
        const int before = __shfl_up_sync(0xffffffffu, through, distance);
        if (lane_index() >= distance) through += before;
      }
      const unsigned reached = __ballot_sync(0xffffffffu, rank - first_rank_ < through);
      if (reached != 0) {
        const int lane = __ffs(static_cast<int>(reached)) - 1;
        rank -= first_rank_ + __shfl_sync(0xffffffffu, through - tiles, lane);
        return first_batch_ + lane;
      }
      first_rank_ += __shfl_sync(0xffffffffu, through, 31);
      first_batch_ += 32;
    }
    return params_.batch;
  }

  /// Tile `rank` of the list of packs of heads: those of this batch, or of all.
  void describe(WorkItem& item, int batch, int rank) const {
    const schedule::Sequence q = sequence_of(params_.q_lengths, batch);
    const int q_tiles = query_tiles(static_cast<int>(q.tokens));
    const int tiles_per_head = q_tiles * params_.splits;
    const bool fixed = params_.q_lengths.kind == LengthKind::fixed;
    const int packs_per_kv_head = params_.heads_per_kv_head / head_pack<kSpec>(params_).heads;
    const int kv_heads = head_packs_ * (fixed ? params_.batch : 1) / packs_per_kv_head;
    const schedule::Share group = schedule::share_of(rank / (tiles_per_head * packs_per_kv_head),
                                                     kv_heads, params_.head_groups);
    const int first_pack = group.first * packs_per_kv_head;
    const int group_packs = group.size * packs_per_kv_head;
    rank -= first_pack * tiles_per_head;
    const int pack = first_pack + rank % group_packs;
    rank /= group_packs;

    item.batch = fixed ? pack / head_packs_ : batch;
    item.head = (fixed ? pack % head_packs_ : pack) * head_pack<kSpec>(params_).heads;
    item.kv_head = item.head / params_.heads_per_kv_head;
    item.split = rank % params_.splits;
    rank /= params_.splits;
    const schedule::Sequence kv = sequence_of(params_.kv_lengths, item.batch);
    item.q_begin = (kSpec.banded ? q_tiles - 1 - rank : rank) * tile_tokens_;
    item.q_first_row = static_cast<int>(q.first_row);
    item.kv_first_row = static_cast<int>(kv.first_row);
    item.q_len = static_cast<int>(q.tokens);
    item.kv_len = static_cast<int>(kv.tokens);

    const schedule::Index q_end = schedule::min(item.q_begin + tile_tokens_, q.tokens);
    const schedule::MaskRule rule =
        kSpec.banded
            ? schedule::make_mask_rule(item.q_len, item.kv_len, false, params_.bottom_right != 0,
                                       params_.window_left, params_.window_right)
            : schedule::make_mask_rule(item.q_len, item.kv_len, false, true, -1, -1);
    item.mask_low = static_cast<int>(rule.low);
    item.mask_high = static_cast<int>(rule.high);
    const schedule::TileWalk walk = schedule::split_walk(
        schedule::make_tile_walk(rule, item.q_begin, q_end, kSpec.tile.kv_rows), item.split,
        params_.splits);
    item.first = static_cast<int>(walk.first);
    item.end = static_cast<int>(walk.end);
    item.unmasked_first = static_cast<int>(walk.unmasked_first);
    item.unmasked_end = static_cast<int>(walk.unmasked_end);
  }

  const HopperForwardParams& params_;
  int tile_tokens_;
  int head_packs_;
  bool drawn_ = false;   ///< whether the block's own number is spent
  int first_batch_ = 0;  ///< where the next search starts,
  int first_rank_ = 0;   ///< and the number of that batch's first tile
};

}  // namespace tilewright::kernels
