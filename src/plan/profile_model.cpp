// src/plan/profile_model.cpp: tiles, bytes and time on a machine that is known by its profile
// alone.
#include <fmt/format.h>

#include <algorithm>

#include "plan/kernel_model.h"
#include "plan/time_model.h"

namespace tilewright {
namespace {

using schedule::ceil_div;
using schedule::max;
using schedule::min;

constexpr Index kQueryRows[] = {1,   2,   4,   8,   16,  32,  48,  64,  80,  96,   112,  128,
                                160, 192, 224, 256, 320, 384, 448, 512, 768, 1024, 1536, 2048};
constexpr Index kKeyRows[] = {1,   2,   4,   8,   16,  32,  48,  64,  80,  96,  112,  128,
                              144, 160, 176, 192, 224, 256, 320, 384, 512, 768, 1024, 2048};

class ProfileModel : public KernelModel {
 public:
  ProfileModel(const AttentionProblem& problem, const Machine& machine, Placement placement)
      : KernelModel(problem, machine), placement_(std::move(placement)) {
    inputs_.machine = &machine;
    inputs_.placement = &placement_;
    inputs_.rates = unit_rates(machine, problem.spec().dtype);
    inputs_.costs = profile_costs(machine);
  }

  KernelFamily family() const override { return KernelFamily::modelled; }

  void candidates(Schedule schedule,
                  const std::function<bool(const Choice&)>& visit) const override {
    const Index granule = inputs_.costs.row_granule;
    const Index packed = packed_heads(schedule);
    // Larger than the problem, or than the matrix unit wastes, is never better.
    const Index most_q = ceil_div(max(1, problem().q_len()), 16) * 16 * packed;
    const Index most_kv = ceil_div(max(1, problem().kv_len()), 16) * 16;
    bool any = false;
    for (const bool small : {false, true}) {
      if (small && any) return;  // tiles below the matrix unit's size only where nothing else fits
      for (const Index q_rows : kQueryRows) {
        if ((q_rows < max(granule, 8)) != small || q_rows > most_q) continue;
        for (const Index kv_rows : kKeyRows) {
          if ((!small && kv_rows < 8) || kv_rows > most_kv) continue;
          Choice choice{schedule, {q_rows, kv_rows}, most_stages(schedule), 1, packed};
          bool fits = visit(choice);
          if (!fits && choice.stages > 1) {
            choice.stages = 1;
            fits = visit(choice);
          }
          any = any || fits;
          if (!fits) break;  // more keys need more bytes
          for (const Index splits : split_counts(choice)) {
            choice.kv_splits = splits;
            visit(choice);
          }
        }
      }
    }
  }

  Choice least(Schedule schedule, const Tile& tile) const override {
    return {schedule, tile, 1, 1, packed_heads(schedule)};
  }

  bool legal(const Choice&) const override { return true; }
  std::string legal_tiles() const override { return "any"; }

  std::vector<PlacedBytes> footprint(const Choice& choice) const override {
    return placed_bytes(placement_, machine(), tile_shape(choice));
  }

  TimeModel time(const Choice& choice) const override {
    TimeInputs in = inputs_;
    in.shape = shape(choice);
    switch (choice.schedule) {
      case Schedule::q_outer:
        return q_outer_time(in, tile_shape(choice), choice.kv_splits);
      case Schedule::kv_outer:
        return kv_outer_time(in, tile_shape(choice));
      case Schedule::standard:
        return standard_time(in, tile_shape(choice));
    }
    return {};
  }

  Traffic traffic(const Choice& choice) const override {
    switch (choice.schedule) {
      case Schedule::q_outer:
        return q_outer_traffic(shape(choice), choice.tile, choice.kv_splits, placement_.hand_off);
      case Schedule::kv_outer:
        return kv_outer_traffic(shape(choice), choice.tile);
      case Schedule::standard:
        return standard_traffic(shape(choice), choice.tile,
                                standard_softmax(machine(), placement_, shape()));
    }
    return {};
  }

  Index workers(const Choice&) const override { return max(1, machine().units); }

  Index workspace_bytes(const Choice& choice, Index) const override {
    const Index rows = problem().lse_rows();
    const Index scores = rows * problem().kv_len() * shape().element_bytes;
    if (choice.schedule == Schedule::standard) return 2 * scores;
    if (choice.schedule == Schedule::kv_outer) return rows * (shape().v_dim + 2) * 4;
    return choice.kv_splits > 1 ? choice.kv_splits * rows * (shape().v_dim + 1) * 4 : 0;
  }

 private:
  Index most_stages(Schedule schedule) const {
    return machine().kind == MachineKind::cpu || schedule != Schedule::q_outer ? 1 : 2;
  }

  /// Few queries leave rows of the matrix unit idle, unless the heads of a group share them.
  Index packed_heads(Schedule schedule) const {
    const bool few = problem().q_len() <= 16 && schedule == Schedule::q_outer;
    return few ? max(1, problem().group()) : 1;
  }

  /// Ways to split the keys when query tiles alone leave units idle.
  std::vector<Index> split_counts(const Choice& choice) const {
    std::vector<Index> counts;
    if (choice.schedule != Schedule::q_outer) return counts;
    const TrafficShape s = shape(choice);
    const Index items = key_walks(s) * ceil_div(s.rule.q_len, tile_tokens(s, choice.tile));
    const Index tiles = ceil_div(s.rule.kv_len, choice.tile.kv_rows);
    if (items == 0) return counts;
    for (Index splits = 2; splits <= tiles && splits <= 128; splits *= 2) {
      if (items * splits >= 4 * machine().units) break;
      counts.push_back(splits);
    }
    return counts;
  }

  TileShape tile_shape(const Choice& choice) const {
    return {choice.tile, choice.stages, shape().qk_dim, shape().v_dim, shape().element_bytes};
  }

  Placement placement_;
  TimeInputs inputs_;
};

}  // namespace

Result<std::unique_ptr<KernelModel>> make_profile_model(const AttentionProblem& problem,
                                                        const Machine& machine) {
  Result<Placement> placement = Placement::create(machine);
  if (!placement.ok()) return placement.status();
  return std::unique_ptr<KernelModel>(
      std::make_unique<ProfileModel>(problem, machine, *std::move(placement)));
}

}  // namespace tilewright
