// tests/simulator/simulate_test.cpp: bytes counted equal the closed forms, results the reference,
// and over-filling throws.
#include "tilewright/simulate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>

#include "backend/simulator/memory.h"
#include "plan/placement.h"
#include "plan/traffic.h"
#include "reference/attention.h"

namespace tilewright {
namespace {

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}
  std::int64_t draw(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(engine_);
  }
  bool coin() { return draw(0, 1) == 1; }
  std::uint64_t seed() { return engine_(); }

 private:
  std::mt19937_64 engine_;
};

AttentionSpec random_spec(Random& random, std::int64_t most_tokens) {
  AttentionSpec spec;
  spec.batch = random.draw(1, 2);
  spec.kv_heads = random.draw(1, 2);
  spec.heads = spec.kv_heads * random.draw(1, 4);
  spec.q_lengths.max_tokens = random.draw(0, most_tokens);
  spec.kv_lengths.max_tokens = random.draw(0, most_tokens);
  spec.qk_dim = random.draw(1, 20);
  spec.v_dim = random.draw(1, 20);
  spec.dtype =
      std::array{DType::f32, DType::bf16, DType::f16}[static_cast<std::size_t>(random.draw(0, 2))];
  spec.mask.causal = random.coin();
  if (random.coin()) spec.mask.diagonal = Diagonal::top_left;
  if (random.draw(0, 2) == 0) spec.mask.window_left = random.draw(0, 30);
  if (random.draw(0, 2) == 0) spec.mask.window_right = random.draw(0, 30);
  if (random.draw(0, 2) == 0) spec.softcap = 5;
  return spec;
}

std::string text(const Plan& plan) {
  return to_text(plan);
}

/// A plan made by hand: any schedule, tile, splits and packing.
Plan hand_plan(const AttentionProblem& problem, Random& random) {
  Plan plan(problem);
  plan.family = KernelFamily::modelled;
  plan.machine_id = "hand";
  ForwardPlan forward;
  forward.schedule = std::array{Schedule::q_outer, Schedule::kv_outer,
                                Schedule::standard}[static_cast<std::size_t>(random.draw(0, 2))];
  forward.tile = {random.draw(1, 20), random.draw(1, 20)};
  forward.stages = random.draw(1, 2);
  if (forward.schedule == Schedule::q_outer) {
    forward.kv_splits = random.draw(1, 3);
    if (random.coin()) forward.packed_heads = std::min(problem.group(), forward.tile.q_rows);
    if (random.coin()) plan.family = KernelFamily::cpu_forward;
  }
  plan.kernel = forward;
  return plan;
}

Traffic closed_form(const Plan& plan, const Machine& machine) {
  const Placement placement = Placement::create(machine).value();
  const ForwardPlan& forward = plan.forward();
  TrafficShape shape = traffic_shape(plan.problem);
  shape.packed_heads = forward.packed_heads;
  if (plan.family == KernelFamily::cpu_forward) {
    shape.partial_floats = 2;
    shape.score_bytes = 4;
  }
  switch (forward.schedule) {
    case Schedule::q_outer:
      return q_outer_traffic(shape, forward.tile, forward.kv_splits, placement.hand_off);
    case Schedule::kv_outer:
      return kv_outer_traffic(shape, forward.tile);
    case Schedule::standard:
      return standard_traffic(shape, forward.tile, standard_softmax(machine, placement, shape));
  }
  return {};
}

TEST(Simulator, CountedBytesEqualTheClosedForms) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  Random random(seed);
  std::vector<Machine> machines = {single_store_machine(1 << 20), single_store_machine(4000)};
  for (const char* id : {"h200", "b200", "ascend_910b2", "ascend_910a", "ascend_950pr", "gaudi3",
                         "mi300x", "epyc_9755", "mlu590"}) {
    machines.push_back(machine_profile(id).value());
  }
  int simulated = 0;
  for (int round = 0; round < 600; ++round) {
    const AttentionProblem problem = AttentionProblem::create(random_spec(random, 40)).value();
    const Machine& machine =
        machines[static_cast<std::size_t>(random.draw(0, std::ssize(machines) - 1))];
    const Plan plan = hand_plan(problem, random);
    SCOPED_TRACE(machine.id + "\n" + text(plan));
    const Result<Simulation> run = simulate(plan, machine);
    if (!run.ok()) {
      ASSERT_EQ(machine.id, "sram") << run.status().message();
      ASSERT_EQ(run.status().code(), StatusCode::does_not_fit);
      continue;
    }
    ++simulated;
    ASSERT_EQ(run->traffic, closed_form(plan, machine));
  }
  EXPECT_GT(simulated, 400);
}

/// The reference's O and LSE of a problem whose operands are fp32 and contiguous.
struct Reference {
  std::vector<double> o;
  std::vector<double> lse;
};

Reference reference_of(const AttentionProblem& problem, const SimulatorInputs& inputs) {
  const auto narrowed = [](const std::vector<double>& values) {
    return std::vector<float>(values.begin(), values.end());
  };
  const std::vector<float> q = narrowed(inputs.q);
  const std::vector<float> k = narrowed(inputs.k);
  const std::vector<float> v = narrowed(inputs.v);
  AttentionTensors tensors;
  tensors.q = q.data();
  tensors.k = k.data();
  tensors.v = v.data();
  const AttentionSpec& spec = problem.spec();
  const auto rows = reference::all_rows(problem, tensors);
  const auto exact = reference::attention(problem, tensors, rows, 1);
  Reference out;
  out.o.resize(static_cast<std::size_t>(spec.batch * problem.q_len() * spec.heads * spec.v_dim));
  out.lse.resize(static_cast<std::size_t>(spec.batch * problem.q_len() * spec.heads));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto& [batch, head, query] = rows[i];
    out.lse[static_cast<std::size_t>((batch * spec.heads + head) * problem.q_len() + query)] =
        exact[i].lse;
    std::copy(exact[i].o.begin(), exact[i].o.end(),
              out.o.begin() + ((batch * problem.q_len() + query) * spec.heads + head) * spec.v_dim);
  }
  return out;
}

SimulatorInputs random_inputs(const AttentionProblem& problem, Random& random) {
  const AttentionSpec& spec = problem.spec();
  std::mt19937_64 engine(random.seed());
  std::normal_distribution<double> normal;
  // Numbers that fp32 holds exactly, so that both sides see the same.
  const auto draw = [&](std::int64_t count) {
    std::vector<double> values(static_cast<std::size_t>(count));
    for (double& value : values) value = static_cast<float>(normal(engine));
    return values;
  };
  const std::int64_t queries = spec.batch * problem.q_len() * spec.heads;
  const std::int64_t keys = spec.batch * problem.kv_len() * spec.kv_heads;
  SimulatorInputs inputs;
  inputs.q = draw(queries * spec.qk_dim);
  inputs.k = draw(keys * spec.qk_dim);
  inputs.v = draw(keys * spec.v_dim);
  return inputs;
}

double worst(const std::vector<double>& got, const std::vector<double>& expected) {
  double error = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (got[i] == expected[i]) continue;  // infinities too
    const double difference = std::abs(got[i] - expected[i]);
    error = std::max(error, std::isnan(difference) ? 1e300 : difference);
  }
  return error;
}

TEST(Simulator, ResultsEqualTheReference) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  Random random(seed);
  const Machine machines[] = {single_store_machine(1 << 20), single_store_machine(2000),
                              machine_profile("ascend_910b2").value()};
  for (int round = 0; round < 150; ++round) {
    AttentionSpec spec = random_spec(random, 30);
    spec.dtype = DType::f32;
    const AttentionProblem problem = AttentionProblem::create(spec).value();
    const Plan plan = hand_plan(problem, random);
    const Machine& machine = machines[static_cast<std::size_t>(random.draw(0, 2))];
    SCOPED_TRACE(machine.id + "\n" + text(plan));
    const SimulatorInputs inputs = random_inputs(problem, random);
    const Result<Simulation> run = simulate(plan, machine, inputs);
    if (!run.ok()) {
      ASSERT_EQ(run.status().code(), StatusCode::does_not_fit) << run.status().message();
      continue;
    }
    const Reference expected = reference_of(problem, inputs);
    ASSERT_EQ(run->o.size(), expected.o.size());
    ASSERT_EQ(run->lse.size(), expected.lse.size());
    ASSERT_LT(worst(run->o, expected.o), 1e-11);
    ASSERT_LT(worst(run->lse, expected.lse), 1e-11);
  }
}

TEST(Simulator, TheComparisonSeesOneWrongNumber) {
  const std::vector<double> expected = {1, 2, -INFINITY};
  EXPECT_EQ(worst({1, 2, -INFINITY}, expected), 0);
  EXPECT_GT(worst({1, 2 + 1e-9, -INFINITY}, expected), 1e-10);
  EXPECT_GT(worst({1, NAN, -INFINITY}, expected), 1);
  EXPECT_GT(worst({1, 2, 3}, expected), 1);
}

TEST(Simulator, OverFillingAMemoryThrowsAndStatesWhat) {
  simulator::Memory memory("SRAM", 100);
  const simulator::Reservation first(memory, "q tile", 60);
  EXPECT_EQ(memory.used_bytes(), 60);
  {
    const simulator::Reservation second(memory, "k tile", 40);
    EXPECT_EQ(memory.used_bytes(), 100);
  }
  EXPECT_EQ(memory.used_bytes(), 60);
  EXPECT_EQ(memory.peak_bytes(), 100);
  try {
    const simulator::Reservation third(memory, "v tile", 41);
    FAIL() << "41 bytes fit into 40";
  } catch (const simulator::CapacityExceeded& exceeded) {
    EXPECT_NE(std::string(exceeded.what()).find("v tile of 41 bytes does not fit \"SRAM\""),
              std::string::npos);
  }
}

std::map<std::string, std::int64_t> footprint_of(const Plan& plan) {
  std::map<std::string, std::int64_t> bytes;
  for (const FootprintItem& item : plan.footprint) bytes[item.store] += item.bytes;
  return bytes;
}

TEST(Simulator, PeaksEqualThePlannedFootprintAndOneByteLessIsRefused) {
  for (const char* id : {"a100_80", "rtx4090", "ascend_910b2", "mi300x", "tpu_v5e", "sram"}) {
    SCOPED_TRACE(id);
    Machine machine =
        std::string_view(id) == "sram" ? single_store_machine(20000) : machine_profile(id).value();
    AttentionSpec spec;
    spec.q_lengths.max_tokens = spec.kv_lengths.max_tokens = 64;
    spec.qk_dim = 32;
    spec.dtype = DType::bf16;
    const AttentionProblem problem = AttentionProblem::create(spec).value();
    PlanOptions options;
    options.tile = Tile{32, 16};
    const Result<Plan> chosen = plan(problem, machine, options);
    ASSERT_TRUE(chosen.ok()) << chosen.status().message();
    const Result<Simulation> run = simulate(*chosen, machine);
    ASSERT_TRUE(run.ok()) << run.status().message();
    auto planned = footprint_of(*chosen);
    for (const StorePeak& peak : run->stores) EXPECT_EQ(peak.peak_bytes, planned[peak.store]);
    EXPECT_EQ(run->stores.size(), planned.size());
    for (const StorePeak& peak : run->stores) {
      Machine smaller = machine;
      for (Store& store : smaller.stores) {
        if (store.name != peak.store) continue;
        store.capacity_bytes = {static_cast<double>(peak.peak_bytes - 1), Grade::read, "planted"};
      }
      const Result<Simulation> refused = simulate(*chosen, smaller);
      ASSERT_FALSE(refused.ok()) << peak.store;
      EXPECT_EQ(refused.status().code(), StatusCode::does_not_fit);
      EXPECT_NE(refused.status().message().find("\"" + peak.store + "\""), std::string::npos);
    }
  }
}

TEST(Simulator, PlansOfEveryProfileRunAsPlanned) {
  AttentionSpec spec;
  spec.heads = 2;
  spec.q_lengths.max_tokens = spec.kv_lengths.max_tokens = 150;
  spec.qk_dim = 16;
  spec.mask.causal = true;
  for (const std::string& id : machine_profile_ids()) {
    SCOPED_TRACE(id);
    const Machine machine = machine_profile(id).value();
    spec.dtype = machine.bf16_flops_per_second.known() || !machine.f16_flops_per_second.known()
                     ? DType::bf16
                     : DType::f16;
    const AttentionProblem problem = AttentionProblem::create(spec).value();
    const Result<Plan> chosen = plan(problem, machine);
    ASSERT_TRUE(chosen.ok()) << chosen.status().message();
    const Result<Simulation> run = simulate(*chosen, machine);
    ASSERT_TRUE(run.ok()) << run.status().message();
    EXPECT_EQ(run->traffic, chosen->traffic);
  }
}

TEST(Simulator, CountingWithoutNumbersCountsTheSame) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  Random random(seed);
  const Machine machines[] = {single_store_machine(4000), machine_profile("ascend_910b2").value(),
                              machine_profile("mlu590").value()};
  SimulatorInputs bytes_only;
  bytes_only.bytes_only = true;
  for (int round = 0; round < 200; ++round) {
    const AttentionProblem problem = AttentionProblem::create(random_spec(random, 40)).value();
    const Plan plan = hand_plan(problem, random);
    const Machine& machine = machines[static_cast<std::size_t>(random.draw(0, 2))];
    SCOPED_TRACE(machine.id + "\n" + text(plan));
    const Result<Simulation> full = simulate(plan, machine);
    const Result<Simulation> counted = simulate(plan, machine, bytes_only);
    ASSERT_EQ(full.status().message(), counted.status().message());
    if (!full.ok()) continue;
    ASSERT_EQ(counted->traffic, full->traffic);
    ASSERT_EQ(counted->stores, full->stores);
    ASSERT_TRUE(counted->o.empty());
    ASSERT_TRUE(counted->lse.empty());
  }
}

TEST(Simulator, DoublingTheLengthQuadruplesTrafficInTheLimit) {
  const Machine machine = single_store_machine(4 << 20);
  SimulatorInputs bytes_only;
  bytes_only.bytes_only = true;
  // Query tiles of 128 rows; key tiles are large, as they change no bytes and each takes time here.
  const auto bytes = [&](std::int64_t tokens) {
    AttentionSpec spec;
    spec.q_lengths.max_tokens = spec.kv_lengths.max_tokens = tokens;
    spec.qk_dim = 128;
    spec.dtype = DType::bf16;
    Plan plan(AttentionProblem::create(spec).value());
    ForwardPlan forward;
    forward.tile = {128, 2048};
    plan.kernel = forward;
    plan.family = KernelFamily::modelled;
    const Result<Simulation> run = simulate(plan, machine, bytes_only);
    EXPECT_TRUE(run.ok()) << run.status().message();
    EXPECT_EQ(run->traffic, closed_form(plan, machine)) << tokens;
    return static_cast<double>(run->traffic.bytes());
  };
  EXPECT_NEAR(bytes(2 << 10) / bytes(1 << 10), 3.78, 0.005);
  EXPECT_NEAR(bytes(16 << 10) / bytes(8 << 10), 3.97, 0.005);
  EXPECT_NEAR(bytes(128 << 10) / bytes(64 << 10), 3.996, 0.0005);
}

TEST(Simulator, SameSeedSameNumbers) {
  AttentionSpec spec;
  spec.q_lengths.max_tokens = spec.kv_lengths.max_tokens = 20;
  spec.qk_dim = 8;
  const Machine machine = single_store_machine(1 << 20);
  const Plan chosen = plan(AttentionProblem::create(spec).value(), machine).value();
  const Simulation one = simulate(chosen, machine, {.q = {}, .k = {}, .v = {}, .seed = 7}).value();
  EXPECT_EQ(one.o, simulate(chosen, machine, {.q = {}, .k = {}, .v = {}, .seed = 7})->o);
  EXPECT_NE(one.o, simulate(chosen, machine, {.q = {}, .k = {}, .v = {}, .seed = 8})->o);
}

TEST(Simulator, Case29_RefusalsNameTheField) {
  AttentionSpec spec;
  spec.q_lengths.max_tokens = spec.kv_lengths.max_tokens = 20;
  spec.qk_dim = 8;
  const Machine machine = single_store_machine(1 << 20);
  SimulatorInputs inputs;
  inputs.k = {1, 2, 3};
  const Plan chosen = plan(AttentionProblem::create(spec).value(), machine).value();
  EXPECT_EQ(simulate(chosen, machine, inputs).status().message(),
            "inputs.k has 3 numbers; accepted: 160, or none");
  spec.alibi = PerHead::per_head;
  const Plan with_alibi = plan(AttentionProblem::create(spec).value(), machine).value();
  EXPECT_EQ(simulate(with_alibi, machine).status().message(),
            "alibi is given; the simulator accepts: none");
}

}  // namespace
}  // namespace tilewright
