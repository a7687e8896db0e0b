// src/plan/cpu_model.cpp: the CPU forward kernels' tiles, bytes and time.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <span>

#include "plan/kernel_model.h"
#include "plan/time_model.h"
#include "schedule/cpu_forward.h"

namespace tilewright {
namespace {

using schedule::ceil_div;
using schedule::max;
using schedule::min;

/// Part of a core's L2 that a tile set may fill before other data displace it.
constexpr double kUsableL2 = 0.75;

constexpr Index kQueryRows[] = {1,   2,   4,   8,   12,  24,  36,  48,  60,  72,  84,  96,  108,
                                120, 144, 168, 192, 240, 288, 336, 384, 480, 576, 768, 1024};
/// Rows that matrix tiles (AMX) take at a time, where other kernels take kCpuRowBlock.
constexpr Index kTileRowBlock = 32;
constexpr Index kTileQueryRows[] = {1,   2,   4,   8,   16,  32,  64,  96,  128, 160,
                                    192, 224, 256, 320, 384, 512, 576, 768, 1024};
constexpr Index kMostQueryRows = 1024;
constexpr Index kKeyRows[] = {16, 32, 48, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 512};

bool has(const Machine& machine, std::string_view feature) {
  return std::find(machine.features.begin(), machine.features.end(), feature) !=
         machine.features.end();
}

/// The best instruction set of a machine that there are kernels for.
std::string best_isa(const Machine& machine, DType dtype) {
  const bool v3 = has(machine, "avx2") && has(machine, "fma") && has(machine, "f16c");
  const bool v4 = v3 && has(machine, "avx512f") && has(machine, "avx512dq") &&
                  has(machine, "avx512bw") && has(machine, "avx512vl");
  if (v4 && dtype == DType::bf16 && has(machine, "avx512_bf16")) {
    return has(machine, "amx_tile") && has(machine, "amx_bf16") ? "amx_bf16" : "avx512_bf16";
  }
  if (v4) return "avx512";
  if (v3) return "avx2";
  return has(machine, "neon") ? "neon" : "portable";
}

/// What the kernels cost, in clocks of a core. Fitted to 1500 timings of one thread on a Zen 4
/// (AVX-512, 32 fp32 FLOP a clock; dims 64 to 256, 512 to 2048 tokens, 57 to 73 tiles each), which
/// they foresee within 6% (5th to 95th percentile). Vector work scales with a core's fp32 rate.
struct CpuCosts {
  double matmul;          ///< times what the peak rate would need
  double score;           ///< exponential, maximum, sum, conversion
  double rescale_vector;  ///< of 16 numbers of O, every row of a block, every key tile
  double pack_vector;     ///< of 16 numbers of a key and its value
  double row_block;       ///< of one block of rows, every key tile
  double spill;           ///< more of matmul for every usable L2 that the tile set is too large
};
constexpr CpuCosts kFp32Costs = {1.124, 0.431, 3.90, 11.6, 327, 0.146};
constexpr CpuCosts kBf16Costs = {1.091, 1.059, 2.96, 8.16, 432, 0.062};
/// AMX: bf16's, raised towards one timing (8 heads, 4096 tokens, dim 128, tiles of 256x512 on 16
/// threads: 17 ms, where they say 13); how it divides between products and scores is not known.
constexpr CpuCosts kTileCosts = {3, 2.5, 6, 8.16, 800, 0.062};
constexpr double kFittedFlopsPerClock = 32;
/// Part of a task by which the last worker is late beyond the tasks' own lengths: cores differ in
/// speed, and other programs take their share. 16 threads of a virtual machine were 0.3 to 0.5
/// late.
constexpr double kLateness = 0.25;
/// What a core moves between itself and a cache that others share.
constexpr double kCacheBytesPerClock = 8;
/// Times as long that few queries take when workers read the rows of a token's heads apart.
constexpr double kHeadsApart = 1.6;

/// Up to so many tasks, the order in which workers take them is followed one by one.
constexpr Index kFollowedTasks = 96;

/// When the last of `workers` ends, if each takes the next of `items` tasks as soon as it is free.
/// A walk's tasks go out longest first, and shrink evenly to the shortest.
double finish_seconds(Index items, Index walk_tasks, Index workers, double longest,
                      double shortest) {
  double free_at[kFollowedTasks] = {};  // a heap whose top is the earliest
  const auto later = [](double a, double b) { return a > b; };
  const double step = (longest - shortest) / static_cast<double>(max(1, walk_tasks - 1));
  double last = 0;
  for (Index task = 0; task < items; ++task) {
    std::pop_heap(free_at, free_at + workers, later);
    double& at = free_at[workers - 1];
    at += longest - step * static_cast<double>(task % walk_tasks);
    last = std::max(last, at);
    std::push_heap(free_at, free_at + workers, later);
  }
  return last;
}

class CpuModel : public KernelModel {
 public:
  CpuModel(const AttentionProblem& problem, const Machine& machine, const PlanOptions& options,
           Placement placement)
      : KernelModel(problem, machine), placement_(std::move(placement)), isa_(options.isa) {
    if (isa_.empty()) isa_ = best_isa(machine, problem.spec().dtype);
    const bool tiles = isa_ == "amx_bf16";
    multiplies_bf16_ = (tiles || isa_ == "avx512_bf16") && problem.spec().dtype == DType::bf16;
    operand_bytes_ = multiplies_bf16_ ? 2 : 4;
    if (tiles && multiplies_bf16_) row_block_ = kTileRowBlock;
    asked_workers_ = options.workers;
    deterministic_ = options.deterministic;
    rates_ = unit_rates(machine, DType::f32);
    // A dot product of pairs does twice the work of a multiply-add; matrix tiles do 32 times as
    // much, half of it while operands are loaded.
    if (multiplies_bf16_) rates_.matmul_flops_per_second *= tiles ? 16 : 2;
    for (std::size_t i = 0; i < machine.stores.size(); ++i) {
      if (machine.stores[i].name == "L1") l1_ = i;
      if (machine.stores[i].name == "L2") l2_ = i;
    }
  }

  KernelFamily family() const override { return KernelFamily::cpu_forward; }

  void candidates(Schedule schedule,
                  const std::function<bool(const Choice&)>& visit) const override {
    const Index group = most_packed(schedule, kMostQueryRows);
    const Index most_q = max(1, problem().q_len()) * group;
    const Index most_kv = max(16, ceil_div(problem().kv_len(), 16) * 16);
    for (const Index q_rows : query_rows()) {
      // Whole groups of heads share a key tile; rows beyond the problem's hold nothing.
      const Index rows = min(ceil_div(q_rows, group) * group, most_q);
      for (const Index kv_rows : kKeyRows) {
        if (kv_rows > most_kv && kv_rows > 16) break;
        Choice choice = least(schedule, {rows, kv_rows});
        if (!visit(choice)) break;
        for (const Index splits : split_counts(choice)) {
          choice.kv_splits = splits;
          visit(choice);
        }
      }
      if (rows == most_q) break;
    }
  }

  Choice least(Schedule schedule, const Tile& tile) const override {
    return {schedule, tile, 1, 1, most_packed(schedule, tile.q_rows)};
  }

  bool legal(const Choice& choice) const override {
    return schedule::cpu_forward_legal(choice.tile.q_rows, choice.tile.kv_rows);
  }

  std::string legal_tiles() const override {
    return fmt::format("q_rows 1 to {}, kv_rows a multiple of {} up to {}",
                       schedule::kCpuMaxQueryRows, schedule::kCpuKeyMultiple,
                       schedule::kCpuMaxKeyRows);
  }

  std::vector<PlacedBytes> footprint(const Choice& choice) const override {
    const schedule::CpuForwardFootprint bytes = tile_bytes(choice);
    return {{l2_, "q tile", bytes.q_bytes},
            {l2_, "k tile", bytes.k_bytes},
            {l2_, "v tile", bytes.v_bytes},
            {l2_, "o tile", bytes.o_bytes},
            {l2_, "row maxima and sums", bytes.row_bytes},
            {l1_, "score block", bytes.score_bytes}};
  }

  TimeModel time(const Choice& choice) const override { return time(choice, workers(choice)); }

  /// Choices are ranked for all cores, so that any number of threads runs the same one.
  double rank_seconds(const Choice& choice) const override {
    const Index workers =
        deterministic_ ? min(machine().units, tasks(choice)) : this->workers(choice);
    return time(choice, max(1, workers)).total_seconds;
  }

  Traffic traffic(const Choice& choice) const override {
    if (choice.schedule == Schedule::standard) {
      return standard_traffic(packed_shape(choice), choice.tile,
                              standard_softmax(machine(), placement_, shape()));
    }
    return q_outer_traffic(packed_shape(choice), choice.tile, choice.kv_splits, {});
  }

  Index workers(const Choice& choice) const override {
    const Index most = asked_workers_ > 0 ? asked_workers_ : machine().units;
    return max(1, min(most, tasks(choice)));
  }

  Index workspace_bytes(const Choice& choice, Index workers) const override {
    if (choice.schedule == Schedule::standard) {
      return schedule::cpu_standard_workspace_bytes(
          choice.tile.q_rows, choice.tile.kv_rows, shape().qk_dim, shape().v_dim, workers,
          problem().q_len(), problem().kv_len(), operand_bytes_);
    }
    return schedule::cpu_forward_workspace_bytes(
        choice.tile.q_rows, choice.tile.kv_rows, shape().qk_dim, shape().v_dim, workers,
        problem().lse_rows(), choice.kv_splits, operand_bytes_);
  }

  std::string isa() const override { return isa_; }

 private:
  TimeModel time(const Choice& choice, Index workers) const;

  std::span<const Index> query_rows() const {
    if (row_block_ == kTileRowBlock) return kTileQueryRows;
    return kQueryRows;
  }

  /// The heads of a group share a key tile; the standard schedule takes them one by one.
  Index most_packed(Schedule schedule, Index q_rows) const {
    return schedule == Schedule::standard ? 1 : min(max(1, problem().group()), q_rows);
  }

  TrafficShape packed_shape(const Choice& choice) const {
    TrafficShape s = shape(choice);
    s.partial_floats = 2;  // maximum and sum
    s.score_bytes = 4;     // S and P are fp32 whatever the operands are
    return s;
  }

  schedule::CpuForwardFootprint tile_bytes(const Choice& choice) const {
    return schedule::cpu_forward_footprint(choice.tile.q_rows, choice.tile.kv_rows, shape().qk_dim,
                                           shape().v_dim, operand_bytes_);
  }

  Index tasks(const Choice& choice) const {
    const TrafficShape s = shape(choice);
    return key_walks(s) * ceil_div(s.rule.q_len, tile_tokens(s, choice.tile)) * choice.kv_splits;
  }

  /// True when few queries meet keys whose heads lie closer than tokens: the kernels then read the
  /// rows of a token together, where there are splits enough for every worker.
  bool streams_heads() const {
    const Strides& k = problem().k();
    return problem().spec().kv_heads > 1 && std::abs(k.head) < std::abs(k.token) &&
           problem().q_len() * problem().group() <= schedule::kCpuStreamedRows;
  }

  /// Splits for when query tiles alone leave cores idle. They follow the machine's cores, not the
  /// threads asked for, so that any number of threads gives the same bits.
  std::vector<Index> split_counts(const Choice& choice) const {
    std::vector<Index> counts;
    const Index items = streams_heads() ? problem().spec().batch : tasks(choice);
    const Index tiles = ceil_div(shape().rule.kv_len, choice.tile.kv_rows);
    if (items == 0 || choice.schedule == Schedule::standard) return counts;
    for (Index splits = 2; splits <= tiles && splits <= 64; splits *= 2) {
      if (items * splits >= 4 * machine().units) break;
      counts.push_back(splits);
    }
    return counts;
  }

  Placement placement_;
  std::string isa_;
  bool multiplies_bf16_ = false;
  Index operand_bytes_ = 4;
  Index row_block_ = schedule::kCpuRowBlock;
  Index asked_workers_ = 0;
  bool deterministic_ = true;
  UnitRates rates_;
  std::size_t l1_ = 0;
  std::size_t l2_ = 0;
};

TimeModel CpuModel::time(const Choice& choice, Index worker_count) const {
  TimeModel time;
  const TrafficShape s = packed_shape(choice);
  if (rates_.matmul_flops_per_second <= 0) return time;
  const CpuCosts& costs = !multiplies_bf16_    ? kFp32Costs
                          : isa_ == "amx_bf16" ? kTileCosts
                                               : kBf16Costs;
  const Index tokens = tile_tokens(s, choice.tile);
  const Index rows = min(choice.tile.q_rows, tokens * s.packed_heads);
  const Index block_tokens = max(1, min(row_block_ / s.packed_heads, tokens));
  const WalkSums sums = walk_sums(s.rule, tokens, choice.tile.kv_rows);
  // A block of rows skips what its mask hides, in vectors of keys.
  const WalkSums seen = walk_sums(s.rule, block_tokens, schedule::kCpuKeyMultiple);
  const WalkSums blocks = walk_sums(s.rule, block_tokens, choice.tile.kv_rows);
  const auto walks = static_cast<double>(key_walks(s));
  const double scores = static_cast<double>(s.sequences) * static_cast<double>(seen.scores);
  const double block_pairs = walks * static_cast<double>(blocks.tiles) *
                             static_cast<double>(ceil_div(rows, row_block_) * block_tokens) /
                             static_cast<double>(tokens);
  // Few rows read keys in place instead of packing them, which costs them as much.
  const double loaded_keys = walks * static_cast<double>(sums.keys);
  const double items = static_cast<double>(tasks(choice));

  const schedule::CpuForwardFootprint bytes = tile_bytes(choice);
  const double usable_l2 = machine().stores[l2_].capacity_bytes.value * kUsableL2;
  const double spill =
      std::max(0.0, static_cast<double>(bytes.total_bytes() - bytes.score_bytes) / usable_l2 - 1);
  // Seconds of a clock of vector work on the core that the costs were fitted on.
  const double vector = kFittedFlopsPerClock / (2 * rates_.vector_ops_per_second);
  const double v_vectors = static_cast<double>(ceil_div(s.v_dim, 16));
  const double both_vectors = static_cast<double>(ceil_div(s.qk_dim + s.v_dim, 32));
  const double matmul = 2 * static_cast<double>(s.qk_dim + s.v_dim) * scores /
                        rates_.matmul_flops_per_second * (costs.matmul + costs.spill * spill);
  const double softmax = (scores * costs.score + block_pairs * static_cast<double>(row_block_) *
                                                     v_vectors * costs.rescale_vector) *
                         vector;
  // Partial results of split keys are written, and read once all are there.
  const double partial_bytes = choice.kv_splits == 1
                                   ? 0
                                   : 8.0 * static_cast<double>(s.sequences * s.rule.q_len *
                                                               choice.kv_splits * (s.v_dim + 2));
  const double overhead =
      loaded_keys * both_vectors * costs.pack_vector * vector +
      (block_pairs * costs.row_block + items * 2000 + partial_bytes / kCacheBytesPerClock) /
          rates_.clock_hz;

  const auto workers = static_cast<double>(worker_count);
  time.matmul_seconds = matmul / workers;
  time.exp_seconds = softmax / workers;
  time.tile_overhead_seconds = overhead / workers;
  const double busy = time.matmul_seconds + time.exp_seconds + time.tile_overhead_seconds;
  // The last task to finish. Tasks of a masked call differ in length.
  const Index walk_tasks = max(1, ceil_div(s.rule.q_len, tokens) * choice.kv_splits);
  const double mean = items > 0 ? busy * workers / items : 0;
  const double mean_tiles =
      static_cast<double>(sums.tiles) / static_cast<double>(max(1, ceil_div(s.rule.q_len, tokens)));
  const double longest =
      mean * std::max(1.0, static_cast<double>(sums.most_tiles) / std::max(mean_tiles, 1e-9));
  const double shortest = std::max(0.0, 2 * mean - longest);
  if (worker_count > 1 && longest < 1.05 * mean) {
    time.tail_seconds = std::ceil(items / workers) * mean - busy;
  } else if (worker_count > 1 && tasks(choice) <= kFollowedTasks) {
    time.tail_seconds = std::max(
        0.0, finish_seconds(tasks(choice), walk_tasks, worker_count, longest, shortest) - busy);
  } else if (worker_count > 1) {
    // The last tasks are the shortest ones of the last walks; on average half of one is left over.
    const double last_tasks = std::min(1.0, workers / static_cast<double>(walk_tasks));
    const double last = shortest + (longest - shortest) * last_tasks / 2;
    time.tail_seconds = std::max(longest - busy, 0.5 * last * (1 - 1 / workers));
  }
  time.tail_seconds += kLateness * (items > workers ? mean : longest) * (1 - 1 / workers);
  const double memory_rate = machine().memory_bytes_per_second.value;
  if (memory_rate > 0) {
    const Traffic off_chip =
        off_chip_traffic(s, Schedule::q_outer, traffic(choice), choice.tile, machine());
    time.memory_seconds = static_cast<double>(off_chip.bytes()) / memory_rate;
  }
  time.total_seconds = std::max(busy + time.tail_seconds, time.memory_seconds) + 2e-6;
  // Few queries wait for memory, even where its rate is unknown.
  if (streams_heads() && problem().spec().batch * choice.kv_splits < worker_count) {
    time.total_seconds *= kHeadsApart;
  }
  if (choice.schedule == Schedule::standard) {
    // S is written, read and written as P, and read again; each pass waits for its bytes.
    const double score_bytes = 4 * static_cast<double>(s.sequences) *
                               static_cast<double>(s.rule.q_len * s.rule.kv_len) * 4;
    const bool cached =
        static_cast<double>(s.rule.q_len * s.rule.kv_len) * 4 < 0.5 * machine().cache_bytes.value;
    const double cache_rate = kCacheBytesPerClock * rates_.clock_hz * workers;
    const double seconds = score_bytes / (cached || memory_rate <= 0 ? cache_rate : memory_rate);
    time.memory_seconds += seconds;
    time.total_seconds += seconds;
  }
  return time;
}

}  // namespace

Result<std::unique_ptr<KernelModel>> make_cpu_model(const AttentionProblem& problem,
                                                    const Machine& machine,
                                                    const PlanOptions& options) {
  for (const std::string_view name : {"L1", "L2"}) {
    const Store* store = machine.store(name);
    if (store != nullptr && store->capacity_bytes.known()) continue;
    return Status{
        StatusCode::invalid_argument,
        fmt::format("machine.stores has no {} of known capacity; accepted: a CPU with one", name)};
  }
  Result<Placement> placement = Placement::create(machine);
  if (!placement.ok()) return placement.status();
  return std::unique_ptr<KernelModel>(
      std::make_unique<CpuModel>(problem, machine, options, *std::move(placement)));
}

}  // namespace tilewright
