// src/plan/hopper_model.cpp: the Hopper forward kernels' tiles, bytes and time.
#include <fmt/format.h>

#include "plan/hopper_forward.h"
#include "plan/kernel_model.h"
#include "plan/time_model.h"
#include "schedule/hopper_forward.h"

namespace tilewright {
namespace {

using schedule::ceil_div;
using schedule::HopperForwardSpecialisation;
using schedule::max;
using schedule::min;

// A tile of one consumer by the time of one of two: a guess, since the two hide each other's
// softmax.
constexpr double kFewQueriesTime = 0.7;

class HopperModel : public KernelModel {
 public:
  HopperModel(const AttentionProblem& problem, const Machine& machine, Placement placement)
      : KernelModel(problem, machine), placement_(std::move(placement)) {
    base_ = hopper_specialisation(problem, ForwardPlan{});
    preferred_ = schedule::preferred_tile(base_, problem.kv_len());
    if (schedule::can_pack_heads(base_) &&
        kFewQueriesTime * static_cast<double>(query_tiles(schedule::kRowsPerConsumer)) <
            static_cast<double>(query_tiles(preferred_.q_rows))) {
      preferred_ = schedule::few_queries_tile(base_);
    }
    for (std::size_t i = 0; i < machine.stores.size(); ++i) {
      if (machine.stores[i].name == "shared memory") shared_ = i;
      if (machine.stores[i].name == "registers") registers_ = i;
    }
    inputs_.machine = &machine;
    inputs_.placement = &placement_;
    inputs_.rates = unit_rates(machine, problem.spec().dtype);
    inputs_.costs = kernel_costs();
  }

  KernelFamily family() const override { return KernelFamily::hopper_forward; }

  void candidates(Schedule schedule,
                  const std::function<bool(const Choice&)>& visit) const override {
    // The tile that is shipped compiled, where it fits; others wait for measurements that favour
    // them.
    Choice shipped = least(schedule, {preferred_.q_rows, preferred_.kv_rows});
    shipped.stages = preferred_.stages;
    if (visit_splits(shipped, visit)) return;
    for (const Index q_rows : {64, 128, 192}) {
      for (Index kv_rows = 16; kv_rows <= 256; kv_rows += 16) {
        if (!visit_splits(least(schedule, {q_rows, kv_rows}), visit)) break;
      }
    }
  }

  Choice least(Schedule schedule, const Tile& tile) const override {
    return {schedule, tile, 2, 1, packed_heads(tile.q_rows)};
  }

  bool legal(const Choice& choice) const override {
    return schedule::legal(specialisation(choice), 1 << 30);
  }

  std::string legal_tiles() const override {
    return "q_rows 128, 192 or, with TMA and no ALiBi, 64, kv_rows a multiple of 16 up to 256, and "
           "registers for scores, "
           "probabilities and output";
  }

  std::vector<PlacedBytes> footprint(const Choice& choice) const override {
    const HopperForwardSpecialisation s = specialisation(choice);
    const schedule::HopperForwardFootprint bytes = schedule::footprint(s);
    const Index rows = choice.tile.q_rows;
    const Index keys = choice.tile.kv_rows;
    return {{shared_, "q tile", bytes.q_bytes},
            {shared_, "k tiles in flight", bytes.k_bytes},
            {shared_, "v tiles in flight", bytes.v_bytes},
            {shared_, "barriers", bytes.control_bytes},
            {registers_, "scores", rows * keys * 4},
            {registers_, "probabilities", rows * keys * 2},
            {registers_, "o tile", rows * s.v_dim * 4}};
  }

  TimeModel time(const Choice& choice) const override {
    TimeInputs in = inputs_;
    in.shape = shape(choice);
    return q_outer_time(
        in, {choice.tile, choice.stages, base_.qk_dim, base_.v_dim, shape().element_bytes},
        choice.kv_splits);
  }

  Traffic traffic(const Choice& choice) const override {
    return q_outer_traffic(shape(choice), choice.tile, choice.kv_splits, {});
  }

  Index workers(const Choice& choice) const override {
    ForwardPlan forward;
    forward.tile = choice.tile;
    forward.kv_splits = choice.kv_splits;
    forward.packed_heads = choice.packed_heads;
    const Index tiles = hopper_tiles(problem(), forward);
    return max(1, min(machine().units, tiles));
  }

  Index workspace_bytes(const Choice& choice, Index) const override {
    return hopper_workspace(problem(), choice.kv_splits).total_bytes;
  }

 private:
  /// Fitted to the kernels' own timings on an H200 (bench/LOG.md: 512 to 32768 tokens, dims 64 to
  /// 256, full and causal).
  KernelCosts kernel_costs() const {
    KernelCosts costs;
    costs.matmul_efficiency = 1;
    costs.overlap = 0.55;
    costs.vector_ops_per_score = 4;
    // The pipeline's fill and the epilogue, which grow with the output.
    costs.query_tile_clocks = 2000 + 20.0 * base_.v_dim;
    costs.launch_seconds = 3e-6;
    costs.row_granule = schedule::kRowsPerConsumer;
    costs.key_granule = 16;
    return costs;
  }

  /// Tiles of one consumer take what rows there are, of all heads that can share them. That changes
  /// no bit of the result, unless keys are split under a mask.
  Index packed_heads(Index q_rows) const {
    return q_rows == schedule::kRowsPerConsumer ? hopper_packed_heads(problem()) : 1;
  }

  Index query_tiles(Index q_rows) const {
    TrafficShape s = shape();
    s.packed_heads = packed_heads(q_rows);
    return key_walks(s) * ceil_div(problem().q_len(), tile_tokens(s, {q_rows, 1}));
  }

  /// The choice, and where its query tiles leave multiprocessors idle also with split keys.
  bool visit_splits(Choice choice, const std::function<bool(const Choice&)>& visit) const {
    if (!visit(choice)) return false;
    const Index items = query_tiles(choice.tile.q_rows);
    const Index key_tiles = ceil_div(problem().kv_len(), choice.tile.kv_rows);
    for (Index splits = 2; splits <= min(key_tiles, 128); splits *= 2) {
      if (items == 0 || items * (splits / 2) >= machine().units) break;
      choice.kv_splits = splits;
      visit(choice);
    }
    return true;
  }

  HopperForwardSpecialisation specialisation(const Choice& choice) const {
    HopperForwardSpecialisation s = base_;
    s.tile = {static_cast<int>(min(choice.tile.q_rows, 1 << 20)),
              static_cast<int>(min(choice.tile.kv_rows, 1 << 20)), static_cast<int>(choice.stages)};
    return s;
  }

  Placement placement_;
  HopperForwardSpecialisation base_;
  schedule::HopperForwardTile preferred_;
  std::size_t shared_ = 0;
  std::size_t registers_ = 0;
  TimeInputs inputs_;
};

}  // namespace

Result<std::unique_ptr<KernelModel>> make_hopper_model(const AttentionProblem& problem,
                                                       const Machine& machine) {
  Status status = check_hopper_forward(problem);
  if (!status.ok()) return status;
  for (const std::string_view store : {"shared memory", "registers"}) {
    if (machine.store(store) != nullptr) continue;
    return Status{
        StatusCode::invalid_argument,
        fmt::format("machine.stores has no \"{}\"; accepted: a machine of arch {} with one", store,
                    machine.arch)};
  }
  Result<Placement> placement = Placement::create(machine);
  if (!placement.ok()) return placement.status();
  return std::unique_ptr<KernelModel>(
      std::make_unique<HopperModel>(problem, machine, *std::move(placement)));
}

}  // namespace tilewright
