// src/plan/choose.cpp: chooses schedule and tile for a problem on a machine.
#include "plan/choose.h"

#include <fmt/format.h>

#include <algorithm>

#include "schedule/cpu_forward.h"

namespace tilewright {

Result<Plan> choose_plan(const AttentionProblem& problem, const Machine& machine,
                         const PlanOptions& options) {
  if (machine.kind != MachineKind::cpu) {
    return Status{StatusCode::unsupported,
                  fmt::format("machine.kind is {}; accepted: cpu", name(machine.kind))};
  }
  const Store* store = machine.store("L2");
  if (store == nullptr || !store->capacity_bytes.known()) {
    return Status{StatusCode::invalid_argument,
                  "machine.stores has no L2; accepted: one of known size"};
  }
  ForwardPlan forward;
  forward.schedule = options.schedule.value_or(Schedule::q_outer);
  forward.workers = options.workers > 0 ? options.workers : machine.units;
  forward.isa = options.isa;
  const auto have = static_cast<std::int64_t>(store->capacity_bytes.value);
  const auto need = [&](const Tile& tile) {
    return schedule::cpu_forward_footprint(tile.q_rows, tile.kv_rows, problem.spec().qk_dim,
                                           problem.spec().v_dim);
  };
  Tile best{128, 256};
  while (need(best).total_bytes() > have && best.kv_rows > 16) best.kv_rows /= 2;
  while (need(best).total_bytes() > have && best.q_rows > 8) best.q_rows /= 2;
  forward.tile = options.tile.value_or(best);
  const auto bytes = need(forward.tile);
  if (bytes.total_bytes() > have) {
    return Status{
        StatusCode::does_not_fit,
        fmt::format("tile is {}x{}, which needs {} bytes of {} and has {}: q {}, k {}, v {}, "
                    "scores {}, o {}, rows {}; fits: {}x{}",
                    forward.tile.q_rows, forward.tile.kv_rows, bytes.total_bytes(), store->name,
                    have, bytes.q_bytes, bytes.k_bytes, bytes.v_bytes, bytes.score_bytes,
                    bytes.o_bytes, bytes.row_bytes, best.q_rows, best.kv_rows)};
  }
  Plan plan(problem);
  plan.machine_id = machine.id;
  plan.kernel = forward;
  plan.footprint = {
      {store->name, "q tile", bytes.q_bytes}, {store->name, "k tile", bytes.k_bytes},
      {store->name, "v tile", bytes.v_bytes}, {store->name, "scores", bytes.score_bytes},
      {store->name, "o tile", bytes.o_bytes}, {store->name, "row max and sum", bytes.row_bytes}};
  plan.deterministic = options.deterministic;
  plan.reason = fmt::format("{}x{} keeps a core's working set within {}", forward.tile.q_rows,
                            forward.tile.kv_rows, store->name);
  return plan;
}

}  // namespace tilewright
