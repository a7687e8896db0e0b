// kernels/attention/hopper_forward_consumer.h: a consumer warpgroup: S = Q K^T, softmax and O = P V
// of 64 rows.
//
// Key tiles go from right to left:
//
//   S = Q K^T of the last key tile; P = softmax numerators
//   for the other key tiles:
//     issue S' = Q K^T of this tile, and O += P V of the one before it
//     online softmax of S', the first row's maximum while O += P V still runs
//     O *= rescale; P = 16 bits of S'
//   O += P V of the first tile; O /= row sums
//
// One consumer's softmax runs under the others' products; three take turns at issuing (ping-pong).
#pragma once

#include "kernels/attention/hopper_forward_block.h"
#include "kernels/ptx/fence.h"
#include "kernels/ptx/math.h"
#include "kernels/ptx/mbarrier.h"
#include "kernels/ptx/wgmma.h"
#include "kernels/tile/mask.h"
#include "kernels/tile/score.h"
#include "kernels/tile/softmax.h"
#include "kernels/tile/store_rows.h"

namespace tilewright::kernels {

/// Key tiles [first, end).
struct KeyTiles {
  int first;
  int end;
};

/// One consumer warpgroup: 64 rows of every query tile.
class Consumer {
 public:
  Consumer(const HopperForwardParams& params, const Shared& shared, int index)
      : params_(params),
        shared_(shared),
        index_(index),
        lane_(lane_index()),
        transform_(params.scale, params.softcap) {}

  void run() {
    if (index_ == kConsumers - 1) pass_turn();  // lets the first consumer begin
    const Ring<Shared::kWorkSlots> ring = shared_.work_ring();
    for (WorkPosition at;; at.advance()) {
      ring.wait_full(at);
      const WorkItem& item = shared_.work(at.stage());
      if (!item.valid) break;
      if (item.first < item.end) {
        attend(item);
      } else {
        store_empty(item);
      }
      __syncwarp();
      ring.release(at, lane_);
    }
  }

 private:
  /// One query tile.
  void attend(const WorkItem& item) {
    if constexpr (kSpec.alibi) {
      transform_.slope = head_scalar(params_.alibi_slopes, item, item.head) * kLog2E;
    }
    const int first = item.first;
    const KeyTiles unmasked = {item.unmasked_first, item.unmasked_end};
    RowBands bands;
    if constexpr (kSpec.banded)
      bands = RowBands::of(item.mask_rule(), token_of(item, 0), token_of(item, 1));
    OnlineSoftmax softmax;
    float scores[kKvRows / 2];
    unsigned probabilities[kKvRows / 16][4];
    float output[kSpec.v_dim / 2];
    float factor[2];

    int tile = item.end - 1;
    wait_q();
    shared_.k_ring().wait_full(k_at_);
    wgmma_fence();
    multiply_scores(scores);
    wgmma_commit();
    wgmma_wait<0>();
    fence_registers(scores);
    release_k(tile == first);
    finish_scores(item, unmasked, bands, tile, scores);
    softmax.step<0>(scores, transform_.c, factor);
    softmax.step<1>(scores, transform_.c, factor);
    take_probabilities(scores, probabilities);

    bool accumulate = false;
    for (; tile > first; accumulate = true) {
      --tile;
      shared_.k_ring().wait_full(k_at_);
      take_turn();
      wgmma_fence();
      multiply_scores(scores);
      wgmma_commit();
      wait_v(item, tile + 1);
      multiply_output(probabilities, output, accumulate);
      wgmma_commit();
      pass_turn();
      wgmma_wait<1>();
      fence_registers(scores);
      release_k(tile == first);
      finish_scores(item, unmasked, bands, tile, scores);
      softmax.raise<0>(scores, transform_.c, factor);
      if constexpr (schedule::early_maximum(kSpec)) {
        compute_before(softmax.row_max[0], shared_.unused());
      }
      wgmma_wait<0>();
      fence_registers(output);
      fence_registers(probabilities);
      release_v();
      softmax.exponentiate<0>(scores, transform_.c, factor);
      softmax.step<1>(scores, transform_.c, factor);
      if constexpr (schedule::late_rescale(kSpec)) {
        factor[0] = compute_after(factor[0], softmax.row_sum[1]);
        factor[1] = compute_after(factor[1], softmax.row_sum[1]);
      }
      multiply_rows(output, factor);
      take_probabilities(scores, probabilities);
    }
    wait_v(item, tile);
    wgmma_fence();
    multiply_output(probabilities, output, accumulate);
    wgmma_commit();
    wgmma_wait<0>();
    fence_registers(output);
    fence_registers(probabilities);
    release_v();
    store(item, softmax, output);
  }

  // --- Products ---

  void multiply_scores(float (&scores)[kKvRows / 2]) const {
    const unsigned long long q = QTile::k_major(shared_.q(index_));
    const unsigned long long k = KvTile::k_major(shared_.k(k_at_.stage()));
#pragma unroll
    for (int step = 0; step < kSpec.qk_dim / 16; ++step) {
      Wgmma<kKvRows>::template shared<Element, false>(scores, q + QTile::k_major_step(step),
                                                      k + KvTile::k_major_step(step), step != 0);
    }
  }

  void multiply_output(const unsigned (&probabilities)[kKvRows / 16][4],
                       float (&output)[kSpec.v_dim / 2], bool accumulate) const {
    const unsigned long long v = KvTile::mn_major(shared_.v(v_at_.stage()));
    using Product = Wgmma<kSpec.v_dim>;
#pragma unroll
    for (int step = 0; step < kKvRows / 16; ++step) {
      const unsigned long long v_step = v + KvTile::mn_major_step(step);
      if constexpr (kSpec.p_in_shared) {
        const unsigned long long p = PTile::k_major(shared_.p(index_)) + PTile::k_major_step(step);
        Product::template shared<Element, true>(output, p, v_step, step != 0 || accumulate);
      } else {
        Product::template registers<Element, true>(output, probabilities[step], v_step,
                                                   step != 0 || accumulate);
      }
    }
  }

  /// Rounds P to 16 bits, where P V reads it. Earlier products must be done.
  void take_probabilities(const float (&scores)[kKvRows / 2],
                          unsigned (&probabilities)[kKvRows / 16][4]) const {
#pragma unroll
    for (int i = 0; i < kKvRows / 4; ++i) {
      probabilities[i / 4][i % 4] = pack_pair<Element>(scores[2 * i], scores[2 * i + 1]);
    }
    if constexpr (kSpec.p_in_shared) {
      named_barrier_sync(kPrivateBarrier + index_, schedule::kWarpgroupThreads);
      char* p = shared_.generic(shared_.p(index_)) + lane_ % 4 * 4;
#pragma unroll
      for (int i = 0; i < kKvRows / 4; ++i) {
        const int at = PTile::chunk_offset(row(i % 2), i / 2);
        *reinterpret_cast<unsigned*>(p + at) = probabilities[i / 4][i % 4];
      }
      fence_async_proxy();
      named_barrier_sync(kPrivateBarrier + index_, schedule::kWarpgroupThreads);
    }
  }

  static void multiply_rows(float (&output)[kSpec.v_dim / 2], const float (&factor)[2]) {
#pragma unroll
    for (int i = 0; i < kSpec.v_dim / 2; ++i) output[i] *= factor[(i / 2) % 2];
  }

  /// Of the consumer's 64: the thread's row r (0 or 1).
  int row(int r) const {
    return static_cast<int>(threadIdx.x) / 32 % 4 * 16 + lane_ / 4 + 8 * r;
  }

  /// Of row r: its token, within the sequence. Beyond the last one if there is none.
  int token_of(const WorkItem& item, int r) const {
    if constexpr (!kPacksHeads) {
      return item.q_begin + index_ * schedule::kRowsPerConsumer + row(r);
    }
    const schedule::HeadPack& pack = params_.pack;
    const int token = pack.token(row(r));
    return token < pack.tokens ? item.q_begin + token : item.q_len;
  }

  int head_of(const WorkItem& item, int r) const {
    return kPacksHeads ? item.head + params_.pack.head(row(r)) : item.head;
  }

  // --- Scores ---

  /// Softcap, ALiBi and mask.
  void finish_scores(const WorkItem& item, const KeyTiles& unmasked, const RowBands& bands,
                     int tile, float (&scores)[kKvRows / 2]) const {
    const int column = tile * kKvRows + 2 * (lane_ % 4);
    if constexpr (kSpec.softcap || kSpec.alibi) {
      transform_.apply(scores, token_of(item, 0) + item.kv_len - item.q_len - column);
    }
    if (tile >= unmasked.first && tile < unmasked.end) return;
    if constexpr (kSpec.banded) {
      mask_scores(scores, bands, column);
    } else {
      mask_tail(scores, item.kv_len - column);
    }
  }

  static float head_scalar(const HeadScalars& scalars, const WorkItem& item, int head) {
    return scalars.data[item.batch * scalars.batch_stride + head * scalars.head_stride];
  }

  /// Of row r, in base 2; -infinity if there is none.
  float sink(const WorkItem& item, int r) const {
    if (params_.sinks.data == nullptr) return -kInfinity;
    return head_scalar(params_.sinks, item, head_of(item, r)) * kLog2E;
  }

  // --- Rings and turns ---

  /// And Q, with its last K.
  void release_k(bool last) {
    shared_.k_ring().release(k_at_, lane_);
    k_at_.advance();
    if (last) {
      shared_.q_ring(index_).release(q_at_, lane_);
      q_at_.advance();
    }
  }

  void release_v() {
    shared_.v_ring().release(v_at_, lane_);
    v_at_.advance();
  }

  /// Rows past the end of a sequence may hold anything, and 0 * NaN is NaN: TMA read the
  /// neighbour's, so they are zeroed here. (Past the tensor's own end TMA and the copy wrote
  /// zeros.)
  void wait_v(const WorkItem& item, int tile) {
    shared_.v_ring().wait_full(v_at_);
    if constexpr (kSpec.copy_producer) return;
    if (params_.kv_lengths.kind == LengthKind::fixed) return;
    const int rows = item.kv_len - tile * kKvRows;
    if (rows >= kKvRows) return;
    // Every consumer zeroes all of it, which spares a barrier between them.
    char* v = shared_.generic(shared_.v(v_at_.stage()));
    constexpr int kRowChunks = KvTile::kRowBytes / 16;
    for (int panel = 0; panel < schedule::panels(kSpec.v_dim); ++panel) {
      uint4* chunks = reinterpret_cast<uint4*>(v + panel * KvTile::kPanelBytes);
      for (int i = rows * kRowChunks + static_cast<int>(threadIdx.x) % 128;
           i < kKvRows * kRowChunks; i += 128) {
        chunks[i] = {0, 0, 0, 0};
      }
    }
    fence_async_proxy();
    named_barrier_sync(kPrivateBarrier + index_, schedule::kWarpgroupThreads);
  }

  /// A negative scale is a positive one on -Q.
  void wait_q() {
    shared_.q_ring(index_).wait_full(q_at_);
    if (params_.scale >= 0.0f) return;
    unsigned* pairs = reinterpret_cast<unsigned*>(shared_.generic(shared_.q(index_)));
    for (int i = static_cast<int>(threadIdx.x) % 128; i < kQBytes / 4; i += 128) {
      pairs[i] ^= 0x80008000u;
    }
    fence_async_proxy();
    named_barrier_sync(kPrivateBarrier + index_, schedule::kWarpgroupThreads);
  }

  void take_turn() const {
    if constexpr (!kPingPong) return;
    named_barrier_sync(kPingPongBarrier + index_, 2 * schedule::kWarpgroupThreads);
  }

  void pass_turn() const {
    if constexpr (!kPingPong) return;
    named_barrier_arrive(kPingPongBarrier + (index_ + 1) % kConsumers,
                         2 * schedule::kWarpgroupThreads);
  }

  // --- Results ---

  using Stored = StoredOf<kSpec.f32_output>::Type;

  Stored* output_data() const {
    return static_cast<Stored*>(params_.o.data);
  }

  OutputRows output_rows(const WorkItem& item) const {
    const StridedTensor& o = params_.o;
    const long long start = item.split * params_.o_split_stride +
                            operand_batch(params_.q_lengths, item.batch) * o.batch_stride;
    const auto at = [&](int r) {
      return start + head_of(item, r) * o.head_stride +
             (item.q_first_row + token_of(item, r)) * o.row_stride;
    };
    const long long first = at(0);
    const long long second = kPacksHeads ? at(1) : first + 8 * o.row_stride;
    return {first, second, {live(item, 0), live(item, 1)}, o.column_stride, params_.v_dim};
  }

  bool live(const WorkItem& item, int r) const {
    return token_of(item, r) < item.q_len;
  }

  /// Natural logarithms, of the thread's two rows.
  void store_lse(const WorkItem& item, const float (&lse)[2]) const {
    if (params_.lse == nullptr || lane_ % 4 != 0) return;
    float* to = params_.lse + item.split * params_.lse_split_stride +
                operand_batch(params_.q_lengths, item.batch) * params_.lse_batch_stride +
                item.q_first_row;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      if (!live(item, r)) continue;
      to[head_of(item, r) * params_.lse_head_stride + token_of(item, r)] = lse[r];
    }
  }

  void store(const WorkItem& item, OnlineSoftmax& softmax,
             const float (&output)[kSpec.v_dim / 2]) const {
    float factor[2], lse[2];
    const float first = sink(item, 0);
    softmax.finish(transform_.c, {first, kPacksHeads ? sink(item, 1) : first}, factor, lse);
    store_rows<Element>(output, factor, output_data(), output_rows(item));
    store_lse(item, lse);
  }

  /// Rows that see no key: O = 0, LSE = -infinity or the sink.
  void store_empty(const WorkItem& item) const {
    const OutputRows rows = output_rows(item);
    for (int column = lane_ % 4; column < rows.columns; column += 4) {
      if (rows.live[0]) output_data()[rows.first + column * rows.column_stride] = 0;
      if (rows.live[1]) output_data()[rows.second + column * rows.column_stride] = 0;
    }
    const float first = sink(item, 0) * kLn2;
    store_lse(item, {first, kPacksHeads ? sink(item, 1) * kLn2 : first});
  }

  const HopperForwardParams& params_;
  const Shared& shared_;
  int index_;
  int lane_;
  ScoreTransform<kSpec> transform_;

  Position k_at_, v_at_;
  RingPosition<1> q_at_;
};

}  // namespace tilewright::kernels
