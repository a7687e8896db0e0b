// src/plan/choose.cpp: chooses schedule and tile for a problem on a machine.
#include "plan/choose.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "plan/explain.h"
#include "plan/kernel_model.h"
#include "plan/time_model.h"

namespace tilewright {
namespace {

/// Bounds that keep every product of a tile's sizes within 64 bits.
constexpr Index kMostTileRows = 1 << 20;
constexpr Index kMostSplits = 1 << 10;

/// Scores of a problem: bytes of traffic stay within 64 bits even if every row is a tile of its
/// own.
constexpr double kMostScores = 0x1p51;

Status check_size(const AttentionProblem& problem) {
  const AttentionSpec& spec = problem.spec();
  const double scores = static_cast<double>(problem.q_len()) *
                        static_cast<double>(problem.kv_len()) * static_cast<double>(spec.heads) *
                        static_cast<double>(spec.batch);
  if (scores <= kMostScores) return {};
  return {
      StatusCode::invalid_argument,
      fmt::format("q_len x kv_len x heads x batch is {} x {} x {} x {}, {:.3g} scores; accepted: "
                  "up to {:.3g} in a plan",
                  problem.q_len(), problem.kv_len(), spec.heads, spec.batch, scores, kMostScores)};
}

Status refuse(StatusCode code, std::string message) {
  return {code, std::move(message)};
}

Status check_options(const Machine& machine, const PlanOptions& options) {
  if (machine.units < 1) {
    return refuse(StatusCode::invalid_argument,
                  fmt::format("machine.units is {}; accepted: 1 or more", machine.units));
  }
  if (options.workers < 0) {
    return refuse(StatusCode::invalid_argument,
                  fmt::format("options.workers is {}; accepted: 1 or more, or 0 for all that the "
                              "machine gives",
                              options.workers));
  }
  if (options.kv_splits && (*options.kv_splits < 1 || *options.kv_splits > kMostSplits)) {
    return refuse(
        StatusCode::invalid_argument,
        fmt::format("options.kv_splits is {}; accepted: 1 to {}", *options.kv_splits, kMostSplits));
  }
  if (options.tile) {
    const struct {
      const char* name;
      Index value;
    } sides[] = {{"q_rows", options.tile->q_rows}, {"kv_rows", options.tile->kv_rows}};
    for (const auto& side : sides) {
      if (side.value >= 1 && side.value <= kMostTileRows) continue;
      return refuse(StatusCode::invalid_argument,
                    fmt::format("options.tile.{} is {}; accepted: 1 to {}", side.name, side.value,
                                kMostTileRows));
    }
  }
  return {};
}

/// The least modelled time found so far, or the fewest bytes where no time is modelled.
class Search {
 public:
  Search(const KernelModel& model, const PlanOptions& options) : model_(model), options_(options) {}

  void run(Schedule schedule) {
    model_.candidates(schedule, [&](const Choice& choice) { return consider(choice); });
  }

  bool consider(Choice choice) {
    if (!model_.legal(choice)) return false;
    if (!fits(model_.machine(), model_.footprint(choice))) return false;
    if (options_.kv_splits || options_.batch_invariant) {
      // The keys are split as asked, or not at all.
      if (choice.kv_splits != 1) return true;
      choice.kv_splits = options_.kv_splits.value_or(1);
    }
    ++considered_;
    const double score = score_of(choice);
    // Equal but for rounding: the earlier, smaller choice stays.
    if (best_ && score >= best_score_ * (1 - 1e-9)) return true;
    best_ = choice;
    best_score_ = score;
    return true;
  }

  const std::optional<Choice>& best() const { return best_; }
  Index considered() const { return considered_; }

 private:
  double score_of(const Choice& choice) const {
    const double seconds = model_.rank_seconds(choice);
    if (seconds > 0) return seconds;
    // Traffic alone would take the fewest keys a tile; each tile costs something too.
    const auto bytes = static_cast<double>(model_.traffic(choice).bytes());
    return bytes * (1 + 8.0 / static_cast<double>(choice.tile.kv_rows));
  }

  const KernelModel& model_;
  const PlanOptions& options_;
  std::optional<Choice> best_;
  double best_score_ = 0;
  Index considered_ = 0;
};

/// The problem whose plan a batch-invariant plan is: it depends on neither batch nor lengths.
Result<AttentionProblem> canonical(const AttentionProblem& problem) {
  AttentionSpec spec = problem.spec();
  spec.batch = 1;
  spec.q_lengths = {LengthKind::fixed, 4096, 0, MemorySpace::host};
  spec.kv_lengths = spec.q_lengths;
  spec.q = spec.k = spec.v = spec.o = {};
  return AttentionProblem::create(spec);
}

Result<Choice> choose(const KernelModel& model, const PlanOptions& options,
                      Alternatives& alternatives) {
  const Schedule schedule = options.schedule.value_or(Schedule::q_outer);
  Search search(model, options);
  search.run(schedule);
  alternatives.tiles_costed = search.considered();
  if (!options.tile) {
    if (search.best()) return *search.best();
    const Choice smallest = model.least(schedule, {16, 16});
    if (!fits(model.machine(), model.footprint(smallest))) {
      return refuse_overflow(model, smallest, std::nullopt);
    }
    return refuse(StatusCode::does_not_fit, "no tile of this family fits the machine");
  }
  alternatives.tile_given = true;
  alternatives.best = search.best();
  if (search.best()) alternatives.best_seconds = model.time(*search.best()).total_seconds;
  Choice asked = model.least(schedule, *options.tile);
  if (options.kv_splits) asked.kv_splits = *options.kv_splits;
  if (!fits(model.machine(), model.footprint(asked))) {
    return refuse_overflow(model, asked, search.best());
  }
  if (!model.legal(asked)) {
    return refuse(
        StatusCode::does_not_fit,
        fmt::format("tile is {}; accepted by {}: {}{}", text(asked.tile), name(model.family()),
                    model.legal_tiles(),
                    search.best() ? "; the best tile that fits: " + text(search.best()->tile)
                                  : std::string()));
  }
  // The planner's number of splits, where that is free, and more tiles in flight where they fit.
  if (!options.kv_splits && search.best() && search.best()->kv_splits > 1) {
    const Index tiles = schedule::ceil_div(model.problem().kv_len(), asked.tile.kv_rows);
    asked.kv_splits = std::max<Index>(1, std::min(search.best()->kv_splits, tiles));
  }
  Choice staged = asked;
  staged.stages = 2;
  if (model.family() == KernelFamily::modelled && schedule == Schedule::q_outer &&
      fits(model.machine(), model.footprint(staged))) {
    asked = staged;
  }
  return asked;
}

/// By the family's own model where it runs the unfused schedule, else by the machine's profile.
void cost_unfused(const KernelModel& model, const Choice& chosen, Alternatives& alternatives) {
  const auto cost = [&](const KernelModel& by, const Tile& tile) {
    const Choice unfused{Schedule::standard, tile, 1, 1, 1};
    alternatives.unfused_traffic = by.traffic(unfused);
    alternatives.unfused_off_chip = off_chip_traffic(
        by.shape(unfused), Schedule::standard, alternatives.unfused_traffic, tile, by.machine());
    alternatives.unfused_seconds = by.time(unfused).total_seconds;
  };
  if (model.family() == KernelFamily::cpu_forward) return cost(model, chosen.tile);
  const auto profile = make_profile_model(model.problem(), model.machine());
  if (profile.ok()) cost(**profile, {128, 128});
}

Plan make_plan(const KernelModel& model, const Choice& choice, const PlanOptions& options,
               const Alternatives& alternatives) {
  const Machine& machine = model.machine();
  Plan plan(model.problem());
  plan.family = model.family();
  plan.machine_id = machine.id;
  ForwardPlan forward;
  forward.schedule = choice.schedule;
  forward.tile = choice.tile;
  forward.stages = choice.stages;
  forward.kv_splits = choice.kv_splits;
  forward.packed_heads = choice.packed_heads;
  forward.workers = model.workers(choice);
  forward.isa = model.isa();
  plan.kernel = forward;
  for (const PlacedBytes& item : model.footprint(choice)) {
    const Store& store = machine.stores[item.store];
    plan.footprint.push_back(
        {store.name, std::string(item.what), item.bytes, capacity_bytes(machine, store)});
  }
  plan.traffic = model.traffic(choice);
  plan.off_chip =
      off_chip_traffic(model.shape(choice), choice.schedule, plan.traffic, choice.tile, machine);
  plan.time = model.time(choice);
  plan.workspace_bytes = model.workspace_bytes(choice, forward.workers);
  plan.deterministic = options.deterministic;
  plan.reason = explain(model, plan, alternatives);
  return plan;
}

}  // namespace

Result<Plan> choose_plan(const AttentionProblem& problem, const Machine& machine,
                         const PlanOptions& options) {
  Status status = check_size(problem);
  if (status.ok()) status = check_options(machine, options);
  if (!status.ok()) return status;
  const auto model = make_kernel_model(problem, machine, options);
  if (!model.ok()) return model.status();
  Alternatives alternatives;
  PlanOptions asked = options;
  if (options.batch_invariant && !options.tile) {
    const Result<AttentionProblem> other = canonical(problem);
    if (!other.ok()) return other.status();
    const auto other_model = make_kernel_model(*other, machine, options);
    if (!other_model.ok()) return other_model.status();
    const Result<Choice> choice = choose(**other_model, options, alternatives);
    if (!choice.ok()) return choice.status();
    asked.tile = choice->tile;
  }
  if (options.batch_invariant) asked.kv_splits = 1;
  const Result<Choice> choice = choose(**model, asked, alternatives);
  if (!choice.ok()) return choice.status();
  cost_unfused(**model, *choice, alternatives);
  return make_plan(**model, *choice, asked, alternatives);
}

}  // namespace tilewright
