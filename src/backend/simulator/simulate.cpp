// src/backend/simulator/simulate.cpp: simulate(): runs a plan's schedule and reports what it moved.
#include "tilewright/simulate.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <new>
#include <random>

#include "backend/simulator/schedules.h"

namespace tilewright {
namespace {

using schedule::Index;

Status refuse(std::string message) {
  return {StatusCode::unsupported, std::move(message)};
}

/// What has no numbers among the simulator's inputs.
Status check_modelled(const AttentionProblem& problem) {
  const AttentionSpec& spec = problem.spec();
  if (spec.alibi != PerHead::none) return refuse("alibi is given; the simulator accepts: none");
  if (spec.sinks != PerHead::none) return refuse("sinks are given; the simulator accepts: none");
  if (spec.bias.kind != BiasKind::none) return refuse("bias is given; the simulator accepts: none");
  for (const Lengths* lengths : {&spec.q_lengths, &spec.kv_lengths}) {
    if (lengths->kind != LengthKind::fixed) {
      return refuse("lengths are read at run; the simulator accepts: fixed lengths");
    }
  }
  return {};
}

Status check_size(const char* name, const std::vector<double>& values, Index expected) {
  if (values.empty() || static_cast<Index>(values.size()) == expected) return {};
  return {StatusCode::invalid_argument,
          fmt::format("inputs.{} has {} numbers; accepted: {}, or none", name, values.size(),
                      expected)};
}

void fill(simulator::OffChip& operand, const std::vector<double>& given, std::mt19937_64& random) {
  std::normal_distribution<double> normal;
  for (std::size_t i = 0; i < operand.values().size(); ++i) {
    operand.values()[i] = given.empty() ? normal(random) : given[i];
  }
}

Traffic collect(const simulator::Run& run) {
  Traffic traffic;
  for (const simulator::OffChip* operand :
       {&run.q, &run.k, &run.v, &run.o, &run.lse, &run.partials, &run.s, &run.p}) {
    const TensorTraffic moved = operand->traffic();
    if (moved.bytes_read + moved.bytes_written > 0) traffic.tensors.push_back(moved);
  }
  return traffic;
}

/// LSE as [batch, heads, tokens]; key tiles outside leave maximum and sum instead.
std::vector<double> collect_lse(simulator::Run& run) {
  const Index q_len = run.shape.rule.q_len;
  const Index columns = run.lse.columns();
  std::vector<double> lse;
  if (!run.has_numbers) return lse;
  for (Index batch = 0; batch < run.batch(); ++batch) {
    for (Index head = 0; head < run.heads(); ++head) {
      for (Index i = 0; i < q_len; ++i) {
        const auto at =
            static_cast<std::size_t>(((batch * q_len + i) * run.heads() + head) * columns);
        const double first = run.lse.values()[at];
        lse.push_back(columns == 1 ? first : first + std::log(run.lse.values()[at + 1]));
      }
    }
  }
  return lse;
}

Simulation run_plan(const Plan& plan, const Machine& machine, const Placement& placement,
                    const SimulatorInputs& inputs) {
  const AttentionSpec& spec = plan.problem.spec();
  const ForwardPlan& forward = plan.forward();
  TrafficShape shape = traffic_shape(plan.problem);
  shape.packed_heads = forward.packed_heads;
  if (plan.family == KernelFamily::cpu_forward) {
    shape.partial_floats = 2;
    shape.score_bytes = 4;
  }
  const Index q_len = plan.problem.q_len();
  const Index kv_len = plan.problem.kv_len();
  const Index element = shape.element_bytes;
  const Index score = shape.score_bytes > 0 ? shape.score_bytes : element;
  const bool kv_outer = forward.schedule == Schedule::kv_outer;
  const bool standard = forward.schedule == Schedule::standard;
  const bool split = forward.kv_splits > 1;
  simulator::Unit unit(machine, placement,
                       {forward.tile, forward.stages, shape.qk_dim, shape.v_dim, element});
  const bool has_numbers = !inputs.bytes_only;
  const auto operand = [&](const char* name, Index tokens, Index heads, Index columns,
                           Index bytes) {
    return simulator::OffChip(name, spec.batch, tokens, heads, columns, bytes, has_numbers);
  };
  simulator::Run run{
      plan.problem,
      forward,
      shape,
      standard_softmax(machine, placement, shape),
      unit,
      has_numbers,
      operand("q", q_len, spec.heads, shape.qk_dim, element),
      operand("k", kv_len, spec.kv_heads, shape.qk_dim, element),
      operand("v", kv_len, spec.kv_heads, shape.v_dim, element),
      operand("o", q_len, spec.heads, shape.v_dim, kv_outer ? 4 : shape.o_bytes),
      operand("lse", q_len, spec.heads, kv_outer ? 2 : 1, 4),
      operand("s", standard ? q_len : 0, spec.heads, kv_len, standard ? score : 4),
      operand("p", standard ? q_len : 0, spec.heads, kv_len, standard ? score : element),
      simulator::OffChip("partials", split ? spec.batch * forward.kv_splits : 0, q_len, spec.heads,
                         shape.v_dim + shape.partial_floats, 4, has_numbers)};
  std::mt19937_64 random(inputs.seed);
  fill(run.q, inputs.q, random);
  fill(run.k, inputs.k, random);
  fill(run.v, inputs.v, random);
  switch (forward.schedule) {
    case Schedule::q_outer:
      run_q_outer(run);
      break;
    case Schedule::kv_outer:
      // Rows start with no maximum and no sum.
      for (std::size_t i = 0; i < run.lse.values().size(); i += 2) {
        run.lse.values()[i] = -std::numeric_limits<double>::infinity();
      }
      run_kv_outer(run);
      break;
    case Schedule::standard:
      run_standard(run);
      break;
  }
  return {std::move(run.o.values()), collect_lse(run), collect(run), unit.peaks()};
}

}  // namespace

Machine single_store_machine(std::int64_t sram_bytes) {
  Machine machine;
  machine.id = "sram";
  machine.name = fmt::format("one memory of {} bytes", sram_bytes);
  machine.kind = MachineKind::npu;
  machine.unit_kind = "unit";
  machine.stores = {{"SRAM",
                     "q k v s o",
                     "unit",
                     1,
                     {static_cast<double>(sram_bytes), Grade::read, "given"},
                     {}}};
  return machine;
}

Result<Simulation> simulate(const Plan& plan, const Machine& machine,
                            const SimulatorInputs& inputs) {
  Status status = check_modelled(plan.problem);
  if (!status.ok()) return status;
  const AttentionSpec& spec = plan.problem.spec();
  const Index q_rows = spec.batch * plan.problem.q_len() * spec.heads;
  const Index kv_rows = spec.batch * plan.problem.kv_len() * spec.kv_heads;
  status = check_size("q", inputs.q, q_rows * spec.qk_dim);
  if (status.ok()) status = check_size("k", inputs.k, kv_rows * spec.qk_dim);
  if (status.ok()) status = check_size("v", inputs.v, kv_rows * spec.v_dim);
  if (!status.ok()) return status;
  const Result<Placement> placement = Placement::create(machine);
  if (!placement.ok()) return placement.status();
  try {
    return run_plan(plan, machine, *placement, inputs);
  } catch (const simulator::CapacityExceeded& exceeded) {
    return Status{StatusCode::does_not_fit, exceeded.what()};
  } catch (const std::bad_alloc&) {
    return Status{StatusCode::out_of_memory, "the simulated tensors could not be allocated"};
  }
}

}  // namespace tilewright
