// src/plan/explain.cpp: the planner's sentences.
#include "plan/explain.h"

#include <fmt/format.h>

#include <algorithm>

#include "plan/copy_engine.h"
#include "plan/time_model.h"

namespace tilewright {
namespace {

struct Term {
  std::string_view name;
  double seconds;
};

std::string limited_by(const TimeModel& time) {
  const Term terms[] = {{"matrix products", time.matmul_seconds},
                        {"exponentials and other vector work", time.exp_seconds},
                        {"moving bytes", time.memory_seconds},
                        {"the cost of each tile", time.tile_overhead_seconds},
                        {"idle units in the last wave", time.tail_seconds}};
  const Term& most =
      *std::max_element(std::begin(terms), std::end(terms),
                        [](const Term& a, const Term& b) { return a.seconds < b.seconds; });
  return fmt::format("Limited by {} ({:.0f}% of the modelled time, in part overlapped)", most.name,
                     100 * most.seconds / std::max(time.total_seconds, 1e-300));
}

std::string ratio(double a, double b) {
  return b > 0 ? fmt::format("{:.3g} times", a / b) : std::string("more");
}

/// Figures behind the plan that are only recalled.
std::string recalled_figures(const Machine& machine, DType dtype) {
  struct Used {
    const char* name;
    const Figure* figure;
  };
  std::vector<Used> used = {{"units", &machine.unit_count},
                            {"clock_hz", &machine.clock_hz},
                            {"cache_bytes", &machine.cache_bytes},
                            {"memory_bytes_per_second", &machine.memory_bytes_per_second},
                            {"matrix rate", &matmul_figure(machine, dtype)},
                            {"f32_flops_per_second", &machine.f32_flops_per_second},
                            {"exp_per_second", &machine.exp_per_second}};
  std::string names;
  const auto add = [&](std::string_view what) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", what);
  };
  for (const Used& figure : used) {
    if (figure.figure->grade == Grade::recalled) add(figure.name);
  }
  for (const Store& store : machine.stores) {
    if (!store.holds.empty() && store.capacity_bytes.grade == Grade::recalled) {
      add(fmt::format("capacity of {}", store.name));
    }
  }
  for (const Link& link : machine.links) {
    if (link.bytes_per_second.grade == Grade::recalled) {
      add(fmt::format("link {} to {}", link.from, link.to));
    }
  }
  return names;
}

std::string unknown_stores(const Machine& machine) {
  std::string names;
  for (const Store& store : machine.stores) {
    if (store.holds.empty() || store.capacity_bytes.known()) continue;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", store.name);
  }
  return names;
}

Index needed(const std::vector<PlacedBytes>& bytes, std::size_t store) {
  Index need = 0;
  for (const PlacedBytes& item : bytes) {
    if (item.store == store) need += item.bytes;
  }
  return need;
}

}  // namespace

bool fits(const Machine& machine, const std::vector<PlacedBytes>& bytes) {
  for (std::size_t store = 0; store < machine.stores.size(); ++store) {
    const Index have = capacity_bytes(machine, machine.stores[store]);
    if (have > 0 && needed(bytes, store) > have) return false;
  }
  return true;
}

std::string text(const Tile& tile) {
  return fmt::format("{}x{}", tile.q_rows, tile.kv_rows);
}

Status refuse_overflow(const KernelModel& model, const Choice& choice,
                       const std::optional<Choice>& best) {
  const Machine& machine = model.machine();
  const std::vector<PlacedBytes> bytes = model.footprint(choice);
  std::string message = fmt::format("tile is {}, which needs ", text(choice.tile));
  bool first = true;
  for (std::size_t index = 0; index < machine.stores.size(); ++index) {
    const Store& store = machine.stores[index];
    const Index have = capacity_bytes(machine, store);
    const Index need = needed(bytes, index);
    if (have == 0 || need <= have) continue;
    std::string items;
    for (const PlacedBytes& item : bytes) {
      if (item.store != index) continue;
      items += fmt::format("{}{} {}", items.empty() ? "" : ", ", item.what, item.bytes);
    }
    message +=
        fmt::format("{}{} bytes of \"{}\" (one {} of {}) and has {}: {}", first ? "" : "; and ",
                    need, store.name, store.unit, machine.id, have, items);
    first = false;
  }
  message += best ? fmt::format("; the best tile that fits: {}", text(best->tile))
                  : std::string("; no tile fits");
  return {StatusCode::does_not_fit, message};
}

std::string explain(const KernelModel& model, const Plan& plan, const Alternatives& alternatives) {
  const Machine& machine = model.machine();
  const ForwardPlan& forward = plan.forward();
  std::string reason;
  const bool timed = plan.time.total_seconds > 0;
  if (alternatives.tile_given) {
    reason = fmt::format("{} was asked for and fits.", text(forward.tile));
    if (alternatives.best && timed && alternatives.best->tile != forward.tile) {
      reason += fmt::format(" {} would take {} the time.", text(alternatives.best->tile),
                            ratio(alternatives.best_seconds, plan.time.total_seconds));
    }
  } else if (timed && plan.family == KernelFamily::hopper_forward) {
    reason = fmt::format("{} is the tile that its kernels are shipped with for such problems.",
                         text(forward.tile));
    if (alternatives.tiles_costed > 1) {
      reason +=
          fmt::format(" {} {} the least modelled time of {} numbers of splits.", forward.kv_splits,
                      forward.kv_splits == 1 ? "takes" : "take", alternatives.tiles_costed);
    }
  } else if (timed) {
    reason = fmt::format("{} takes the least modelled time of the {} choices that fit.",
                         text(forward.tile), alternatives.tiles_costed);
  } else {
    reason = fmt::format(
        "{} moves the fewest bytes of the {} choices that fit; the machine's rates are not known, "
        "so no time is modelled.",
        text(forward.tile), alternatives.tiles_costed);
  }
  if (timed) reason += " " + limited_by(plan.time) + ".";
  if (forward.kv_splits > 1) {
    reason += fmt::format(" {} splits of the keys give every {} work.", forward.kv_splits,
                          machine.unit_kind);
  }
  if (forward.packed_heads > 1) {
    reason += fmt::format(" {} query heads share each key tile.", forward.packed_heads);
  }
  if (forward.schedule != Schedule::standard && plan.traffic.bytes() > 0) {
    reason += fmt::format(" Unfused attention would move {} the bytes",
                          ratio(static_cast<double>(alternatives.unfused_traffic.bytes()),
                                static_cast<double>(plan.traffic.bytes())));
    if (plan.off_chip.bytes() > 0 && plan.off_chip != plan.traffic) {
      reason += fmt::format(" ({} off chip)",
                            ratio(static_cast<double>(alternatives.unfused_off_chip.bytes()),
                                  static_cast<double>(plan.off_chip.bytes())));
    }
    if (timed && alternatives.unfused_seconds > 0) {
      reason += fmt::format(" in {} the time",
                            ratio(alternatives.unfused_seconds, plan.time.total_seconds));
    }
    reason += ".";
  }
  if (plan.family == KernelFamily::modelled) {
    reason += " No kernel here runs this plan; the simulator does.";
    if (timed && !machine.exp_per_second.known()) {
      reason += " The rate of exponentials is not known: ten vector operations each are assumed.";
    }
  }
  if (plan.family == KernelFamily::hopper_forward) {
    const std::string refusal = copy_engine_refusal(plan.problem);
    if (!refusal.empty()) reason += fmt::format(" Read by plain copies, since {}.", refusal);
  }
  const std::string recalled = recalled_figures(machine, plan.problem.spec().dtype);
  if (!recalled.empty()) reason += fmt::format(" Figures only recalled: {}.", recalled);
  const std::string unknown = unknown_stores(machine);
  if (!unknown.empty()) {
    reason += fmt::format(" Capacity not known, so not checked: {}.", unknown);
  }
  return reason;
}

}  // namespace tilewright
