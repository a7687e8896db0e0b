// kernels/attention/hopper_forward.cu: exact attention forward for sm_90a, one source for every specialisation.
//
// A persistent block takes query tiles until there are none. Its first warpgroup, the producer, keeps rings of
// K and V tiles full (and Q); each other warpgroup owns 64 query rows of the tile:
//
//   S = Q K^T of the last key tile; P = softmax numerators
//   for the other key tiles, from right to left:
//     issue S' = Q K^T of this tile, and O += P V of the one before it
//     while both run: online softmax of S' (it needs only the first)
//     O *= rescale; P = 16 bits of S'
//   O += P V of the first tile; O /= row sums
//
// Two or three such warpgroups take turns at issuing (ping-pong), so that one's softmax runs under
// the others' products. How to compile and launch: hopper_forward_params.h.
#include "kernels/attention/hopper_forward_params.h"
#include "kernels/ptx/element.h"
#include "kernels/ptx/fence.h"
#include "kernels/ptx/math.h"
#include "kernels/ptx/mbarrier.h"
#include "kernels/ptx/thread.h"
#include "kernels/ptx/tma.h"
#include "kernels/ptx/wgmma.h"
#include "kernels/tile/copy.h"
#include "kernels/tile/mask.h"
#include "kernels/tile/ring.h"
#include "kernels/tile/score.h"
#include "kernels/tile/shared_tile.h"
#include "kernels/tile/softmax.h"
#include "kernels/tile/store_rows.h"
#include "kernels/tile/work.h"
#include "schedule/hopper_forward.h"

namespace tilewright::kernels {

namespace {

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

constexpr int kQRows = kSpec.tile.q_rows;
constexpr int kKvRows = kSpec.tile.kv_rows;
constexpr int kStages = kSpec.tile.stages;
constexpr int kConsumers = schedule::consumer_warpgroups(kSpec);
constexpr int kReaders = 4 * kConsumers + (kSpec.copy_producer ? 4 : 1);  // warps that read work items
constexpr bool kPingPong = schedule::ping_pong(kSpec);
constexpr int kPingPongBarrier = 1;  // and the next ones: one a consumer; 0 is the whole block's
constexpr int kPrivateBarrier = kPingPongBarrier + kConsumers;  // and the next ones, likewise

constexpr schedule::HopperForwardFootprint kFootprint = schedule::footprint(kSpec);
constexpr int kKStageBytes = kFootprint.k_bytes / kStages;
constexpr int kVStageBytes = kFootprint.v_bytes / kStages;

using QTile = SharedTile<kQRows>;
using KvTile = SharedTile<kKvRows>;
using Position = RingPosition<kStages>;

/// Shared memory: Q, then the K stages, the V stages, and what controls them.
struct Shared {
  static constexpr int kK = kFootprint.q_bytes;
  static constexpr int kV = kK + kFootprint.k_bytes;
  static constexpr int kWork = kV + kFootprint.v_bytes;
  static constexpr int kBarriers = kWork + 2 * 64;
  static_assert(sizeof(WorkItem) == 64);
  static_assert(2 * 64 + 2 * Ring<kStages>::kBytes + Ring<1>::kBytes + Ring<2>::kBytes <=
                schedule::kControlBytes);

  char* base;
  unsigned address;

  explicit Shared(char* start) : base(start), address(shared_address(start)) {}

  unsigned q() const { return address; }
  unsigned k(int stage) const { return address + kK + stage * kKStageBytes; }
  unsigned v(int stage) const { return address + kV + stage * kVStageBytes; }
  char* generic(unsigned place) const { return base + (place - address); }

  Ring<kStages> k_ring() const { return {address + kBarriers}; }
  Ring<kStages> v_ring() const { return {k_ring().barriers + Ring<kStages>::kBytes}; }
  Ring<1> q_ring() const { return {v_ring().barriers + Ring<kStages>::kBytes}; }
  Ring<2> work_ring() const { return {q_ring().barriers + Ring<1>::kBytes}; }
  WorkItem& work(int slot) const { return *reinterpret_cast<WorkItem*>(base + kWork + 64 * slot); }

  void init_barriers() const {
    const int producers = kSpec.copy_producer ? schedule::kWarpgroupThreads : 1;
    k_ring().init(producers, 4 * kConsumers);
    v_ring().init(producers, 4 * kConsumers);
    q_ring().init(producers, 4 * kConsumers);
    work_ring().init(1, kReaders);
  }
};

/// Fills the rings: one thread with TMA, or the warpgroup with plain copies.
class Loader {
 public:
  Loader(const HopperForwardParams& params, const Shared& shared)
      : params_(params), shared_(shared), keep_(l2_evict_last()), stream_(l2_evict_first()) {}

  /// In the order in which the consumers will want them.
  void load(const WorkItem& item) {
    const int first = item.first;
    int tile = item.end - 1;
    if (tile < first) return;
    load_k(item, tile);
    load_q(item);
    for (; tile > first; --tile) {
      load_k(item, tile - 1);
      load_v(item, tile);
    }
    load_v(item, first);
  }

 private:
  void load_q(const WorkItem& item) {
    const Ring<1> ring = shared_.q_ring();
    ring.wait_empty(q_at_);
    load_tile<kQRows, kSpec.qk_dim>(ring.full(0), shared_.q(), params_.q_map, params_.q,
                                    params_.q_lengths, item, item.head, item.q_first_row,
                                    item.q_begin, item.q_len, params_.qk_dim, stream_);
    q_at_.advance();
  }

  void load_k(const WorkItem& item, int tile) {
    const Ring<kStages> ring = shared_.k_ring();
    ring.wait_empty(k_at_);
    load_tile<kKvRows, kSpec.qk_dim>(ring.full(k_at_.stage), shared_.k(k_at_.stage), params_.k_map,
                                     params_.k, params_.kv_lengths, item, item.kv_head,
                                     item.kv_first_row, tile * kKvRows, item.kv_len,
                                     params_.qk_dim, keep_);
    k_at_.advance();
  }

  void load_v(const WorkItem& item, int tile) {
    const Ring<kStages> ring = shared_.v_ring();
    ring.wait_empty(v_at_);
    load_tile<kKvRows, kSpec.v_dim>(ring.full(v_at_.stage), shared_.v(v_at_.stage), params_.v_map,
                                    params_.v, params_.kv_lengths, item, item.kv_head,
                                    item.kv_first_row, tile * kKvRows, item.kv_len, params_.v_dim,
                                    keep_);
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
      copy_tile<Rows, Dim>(shared_.generic(tile), tensor, batch,
                           static_cast<long long>(first_row) + row, head, length - row, columns);
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

/// The producer warpgroup. Its first warp also schedules.
void produce(const HopperForwardParams& params, const Shared& shared, int warp) {
  if (!kSpec.copy_producer && warp != 0) return;
  Scheduler<kSpec> scheduler(params);
  Loader loader(params, shared);
  const Ring<2> ring = shared.work_ring();
  RingPosition<2> at;
  const bool elected = elect_one();
  for (;;) {
    if (warp == 0) {
      ring.wait_empty(at);
      scheduler.next(shared.work(at.stage));
      if (lane_index() == 0) barrier_arrive(ring.full(at.stage));
      scheduler.draw();
    }
    ring.wait_full(at);
    const WorkItem& item = shared.work(at.stage);
    if (!item.valid) break;
    if (kSpec.copy_producer || elected) loader.load(item);
    __syncwarp();
    ring.release(at, lane_index());
    at.advance();
  }
  if (warp == 0) scheduler.finish();
}

/// Key tiles [first, end) need no mask.
struct TileEdges {
  int first;
  int end;
};

/// One consumer warpgroup: 64 rows of every tile.
class Consumer {
 public:
  Consumer(const HopperForwardParams& params, const Shared& shared, int index)
      : params_(params), shared_(shared), index_(index), lane_(lane_index()) {
    const int warp = static_cast<int>(threadIdx.x) / 32 % 4;
    row_in_tile_ = schedule::kRowsPerConsumer * index + 16 * warp + lane_ / 4;
    q_ = QTile::k_major(shared.q() + index * schedule::kRowsPerConsumer * QTile::kRowBytes);
  }

  void run() {
    // The last consumer lets the first one begin.
    if (kPingPong && index_ == kConsumers - 1) pass_turn();
    const Ring<2> ring = shared_.work_ring();
    RingPosition<2> at;
    for (;;) {
      ring.wait_full(at);
      const WorkItem& item = shared_.work(at.stage);
      if (!item.valid) break;
      attend(item);
      __syncwarp();
      ring.release(at, lane_);
      at.advance();
    }
  }

 private:
  void attend(const WorkItem& item) {
    const ScoreTransform<kSpec> transform(params_.scale, params_.softcap, alibi_slope(item));
    RowBands bands;
    if constexpr (kSpec.banded) {
      bands = RowBands::of(mask_rule_of(params_, item.q_len, item.kv_len),
                           item.q_begin + row_in_tile_);
    }
    OnlineSoftmax softmax;
    float scores[kKvRows / 2];
    unsigned probabilities[kKvRows / 16][4];
    float output[kSpec.v_dim / 2];
    float rescale[2];

    const int first = item.first;
    const TileEdges edges = {item.unmasked_first, item.unmasked_end};
    if (first < item.end) {
      int tile = item.end - 1;
      shared_.q_ring().wait_full(q_at_);
      if (params_.scale < 0.0f) negate_q();
      shared_.k_ring().wait_full(k_at_);
      wgmma_fence();
      multiply_scores(scores);
      wgmma_commit();
      wgmma_wait<0>();
      fence_registers(scores);
      release_k(tile == first);
      finish_scores(item, edges, tile, transform, bands, scores);
      softmax.step(scores, transform.c, rescale);
      pack(scores, probabilities);

      bool accumulate = false;
      for (; tile > first; accumulate = true) {
        --tile;
        shared_.k_ring().wait_full(k_at_);
        if constexpr (kPingPong) wait_turn();
        wgmma_fence();
        multiply_scores(scores);
        wgmma_commit();
        wait_v(item, tile + 1);
        multiply_output(probabilities, output, accumulate);
        wgmma_commit();
        if constexpr (kPingPong) pass_turn();
        wgmma_wait<1>();
        fence_registers(scores);
        release_k(tile == first);
        finish_scores(item, edges, tile, transform, bands, scores);
        softmax.step(scores, transform.c, rescale);
        wgmma_wait<0>();
        fence_registers(output);
        fence_registers(probabilities);
        release_v();
        multiply_rows(output, rescale);
        pack(scores, probabilities);
      }
      wait_v(item, tile);
      wgmma_fence();
      multiply_output(probabilities, output, accumulate);
      wgmma_commit();
      wgmma_wait<0>();
      fence_registers(output);
      fence_registers(probabilities);
      release_v();
    } else {
#pragma unroll
      for (int i = 0; i < kSpec.v_dim / 2; ++i) output[i] = 0.0f;
    }
    store(item, transform.c, softmax, output);
  }

  // --- Products ---

  void multiply_scores(float (&scores)[kKvRows / 2]) {
    const unsigned long long k = KvTile::k_major(shared_.k(k_at_.stage));
#pragma unroll
    for (int step = 0; step < kSpec.qk_dim / 16; ++step) {
      Wgmma<kKvRows>::template shared<Element, false>(scores, q_ + QTile::k_major_step(step),
                                                      k + KvTile::k_major_step(step), step != 0);
    }
  }

  void multiply_output(const unsigned (&probabilities)[kKvRows / 16][4],
                       float (&output)[kSpec.v_dim / 2], bool accumulate) {
    const unsigned long long v = KvTile::mn_major(shared_.v(v_at_.stage));
#pragma unroll
    for (int step = 0; step < kKvRows / 16; ++step) {
      Wgmma<kSpec.v_dim>::template registers<Element, true>(output, probabilities[step],
                                                            v + KvTile::mn_major_step(step),
                                                            step != 0 || accumulate);
    }
  }

  static void pack(const float (&scores)[kKvRows / 2], unsigned (&probabilities)[kKvRows / 16][4]) {
#pragma unroll
    for (int i = 0; i < kKvRows / 4; ++i) {
      probabilities[i / 4][i % 4] = pack_pair<Element>(scores[2 * i], scores[2 * i + 1]);
    }
  }

  static void multiply_rows(float (&output)[kSpec.v_dim / 2], const float (&factor)[2]) {
#pragma unroll
    for (int i = 0; i < kSpec.v_dim / 2; ++i) output[i] *= factor[(i / 2) % 2];
  }

  // --- Scores ---

  void finish_scores(const WorkItem& item, const TileEdges& edges, int tile,
                     const ScoreTransform<kSpec>& transform, const RowBands& bands,
                     float (&scores)[kKvRows / 2]) const {
    const int column = tile * kKvRows + 2 * (lane_ % 4);
    if constexpr (kSpec.softcap || kSpec.alibi) {
      transform.apply(scores, item.q_begin + row_in_tile_ + item.kv_len - item.q_len - column);
    }
    if (tile >= edges.first && tile < edges.end) return;
    if constexpr (kSpec.banded) {
      mask_scores(scores, bands, column);
    } else {
      mask_tail(scores, item.kv_len - column);
    }
  }

  float alibi_slope(const WorkItem& item) const {
    return kSpec.alibi ? head_scalar(params_.alibi_slopes, item) : 0.0f;
  }

  static float head_scalar(const HeadScalars& scalars, const WorkItem& item) {
    return scalars.data[item.batch * scalars.batch_stride + item.head * scalars.head_stride];
  }

  // --- Rings and turns ---

  void release_k(bool last) {
    shared_.k_ring().release(k_at_, lane_);
    k_at_.advance();
    if (last) {
      shared_.q_ring().release(q_at_, lane_);
      q_at_.advance();
    }
  }

  void release_v() {
    shared_.v_ring().release(v_at_, lane_);
    v_at_.advance();
  }

  /// Rows past the end of a sequence may hold anything, and 0 * NaN is NaN: TMA read the neighbour's, so
  /// they are zeroed here. (Past the tensor's own end TMA and the copy wrote zeros.)
  void wait_v(const WorkItem& item, int tile) {
    shared_.v_ring().wait_full(v_at_);
    if constexpr (kSpec.copy_producer) return;
    const int rows = item.kv_len - tile * kKvRows;
    if (params_.kv_lengths.kind == LengthKind::fixed || rows >= kKvRows) return;
    // Every consumer zeroes all of it, which spares a barrier between them.
    char* v = shared_.generic(shared_.v(v_at_.stage));
    constexpr int kRowChunks = KvTile::kRowBytes / 16;
    for (int panel = 0; panel < schedule::panels(kSpec.v_dim); ++panel) {
      uint4* chunks = reinterpret_cast<uint4*>(v + panel * KvTile::kPanelBytes);
      for (int i = rows * kRowChunks + static_cast<int>(threadIdx.x) % 128; i < kKvRows * kRowChunks;
           i += 128) {
        chunks[i] = {0, 0, 0, 0};
      }
    }
    fence_async_proxy();
    named_barrier_sync(kPrivateBarrier + index_, schedule::kWarpgroupThreads);
  }

  void negate_q() {
    char* q = shared_.generic(shared_.q()) + index_ * schedule::kRowsPerConsumer * QTile::kRowBytes;
    for (int panel = 0; panel < schedule::panels(kSpec.qk_dim); ++panel) {
      unsigned* pairs = reinterpret_cast<unsigned*>(q + panel * QTile::kPanelBytes);
      for (int i = static_cast<int>(threadIdx.x) % 128;
           i < schedule::kRowsPerConsumer * QTile::kRowBytes / 4; i += 128) {
        pairs[i] ^= 0x80008000u;
      }
    }
    fence_async_proxy();
    named_barrier_sync(kPrivateBarrier + index_, schedule::kWarpgroupThreads);
  }

  void wait_turn() const {
    named_barrier_sync(kPingPongBarrier + index_, 2 * schedule::kWarpgroupThreads);
  }

  void pass_turn() const {
    named_barrier_arrive(kPingPongBarrier + (index_ + 1) % kConsumers,
                         2 * schedule::kWarpgroupThreads);
  }

  // --- Results ---

  void store(const WorkItem& item, float c, OnlineSoftmax& softmax,
             float (&output)[kSpec.v_dim / 2]) const {
    const float sink = params_.sinks.data == nullptr ? -kInfinity
                                                     : head_scalar(params_.sinks, item) * kLog2E;
    float normalise[2], lse[2];
    softmax.finish(c, sink, normalise, lse);
    multiply_rows(output, normalise);

    const long long batch = operand_batch(params_.q_lengths, item.batch);
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int row_in_sequence = item.q_begin + row_in_tile_ + 8 * r;
      const bool live = row_in_sequence < item.q_len;
      const long long row = static_cast<long long>(item.q_first_row) + row_in_sequence;
      const StridedTensor& o = params_.o;
      const long long offset = item.split * params_.o_split_stride + batch * o.batch_stride +
                               row * o.row_stride + item.head * o.head_stride;
      if constexpr (kSpec.f32_output) {
        store_row_f32(output, r, static_cast<float*>(o.data) + offset, o.column_stride,
                      params_.v_dim, live);
      } else {
        store_row_16bit<Element>(output, r, static_cast<unsigned short*>(o.data) + offset,
                                 o.column_stride, params_.v_dim, live);
      }
      if (live && params_.lse != nullptr && lane_ % 4 == 0) {
        params_.lse[item.split * params_.lse_split_stride + batch * params_.lse_batch_stride +
                    item.head * params_.lse_head_stride + row] = lse[r];
      }
    }
  }

  const HopperForwardParams& params_;
  const Shared& shared_;
  int index_;
  int lane_;
  int row_in_tile_;  ///< the thread's first; its second is 8 further down
  unsigned long long q_;
  Position k_at_, v_at_;
  RingPosition<1> q_at_;
};

}  // namespace

extern "C" __global__ void __launch_bounds__(schedule::threads(kSpec), 1)
    hopper_forward(const __grid_constant__ HopperForwardParams params) {
  extern __shared__ __align__(1024) char shared_memory[];
  const Shared shared(shared_memory);
  const int warp = warp_uniform(static_cast<int>(threadIdx.x) / 32);
  if (warp == 0 && lane_index() == 0) {
    if constexpr (!kSpec.copy_producer) {
      tma_prefetch(&params.q_map);
      tma_prefetch(&params.k_map);
      tma_prefetch(&params.v_map);
    }
    shared.init_barriers();
    fence_barrier_init();
  }
  __syncthreads();
  if (warp < 4) {
    registers_decrease<schedule::producer_register_limit(kSpec)>();
    produce(params, shared, warp);
  } else {
    registers_increase<schedule::consumer_register_limit(kSpec)>();
    Consumer(params, shared, warp / 4 - 1).run();
  }
}

}  // namespace tilewright::kernels
