// tests/plan/planner_test.cpp: plans fit, explain themselves, and refuse with an answer.
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "plan/choose.h"
#include "plan/explain.h"
#include "schedule/mask_rule.h"
#include "tests/plan/some_problems.h"
#include "tilewright/plan.h"

namespace tilewright {
namespace {

/// A type of operand that the machine has a rate for, 16 bits wide where it can be.
DType some_dtype(const Machine& machine) {
  if (machine.bf16_flops_per_second.known()) return DType::bf16;
  return machine.f16_flops_per_second.known() ? DType::f16 : DType::bf16;
}

/// Bytes that the plan puts into each store, against what one unit has.
void expect_fits(const Plan& plan, const Machine& machine) {
  std::map<std::string, std::int64_t> bytes;
  for (const FootprintItem& item : plan.footprint) {
    EXPECT_GE(item.bytes, 0);
    bytes[item.store] += item.bytes;
  }
  for (const auto& [store_name, need] : bytes) {
    const Store* store = machine.store(store_name);
    ASSERT_NE(store, nullptr) << store_name;
    if (!store->capacity_bytes.known()) continue;
    const double share = store->unit == "device" ? static_cast<double>(machine.units) : 1;
    EXPECT_LE(static_cast<double>(need), store->capacity_bytes.value / share) << store_name;
  }
}

AttentionSpec random_spec(std::mt19937_64& random, DType dtype) {
  const auto draw = [&](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  };
  // Lengths of every magnitude, ragged.
  const auto length = [&] { return draw(0, (std::int64_t{1} << draw(1, 18))); };
  AttentionSpec spec;
  spec.batch = draw(0, 4);
  spec.kv_heads = draw(1, 8);
  spec.heads = spec.kv_heads * draw(1, 8);
  spec.q_lengths.max_tokens = length();
  spec.kv_lengths.max_tokens = length();
  spec.qk_dim = draw(1, 256);
  spec.v_dim = draw(0, 1) == 0 ? 0 : draw(1, 256);
  spec.dtype = dtype;
  spec.mask.causal = draw(0, 1) == 1;
  if (draw(0, 3) == 0) spec.mask.window_left = draw(0, 5000);
  if (draw(0, 3) == 0) spec.mask.window_right = draw(0, 5000);
  if (draw(0, 1) == 0) spec.mask.diagonal = Diagonal::top_left;
  return spec;
}

TEST(Planner, NoPlanForAnyProfileExceedsAStore) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  std::vector<Machine> machines = {this_cpu()};
  for (const std::string& id : machine_profile_ids()) machines.push_back(profile(id));
  int refused = 0;
  for (int round = 0; round < 12; ++round) {
    for (const Machine& machine : machines) {
      const AttentionProblem p = problem(random_spec(random, some_dtype(machine)));
      for (const auto schedule : {Schedule::q_outer, Schedule::kv_outer, Schedule::standard}) {
        SCOPED_TRACE(machine.id + " " + std::string(name(schedule)));
        PlanOptions options;
        options.schedule = schedule;
        if (round % 2 == 1) {
          options.tile = Tile{std::uniform_int_distribution<std::int64_t>(1, 1024)(random),
                              std::uniform_int_distribution<std::int64_t>(1, 1024)(random)};
        }
        const Result<Plan> chosen = plan(p, machine, options);
        if (chosen.ok()) {
          expect_fits(*chosen, machine);
          EXPECT_FALSE(chosen->reason.empty());
          continue;
        }
        // What is refused comes with a tile that is accepted.
        ++refused;
        ASSERT_EQ(chosen.status().code(), StatusCode::does_not_fit) << chosen.status().message();
        ASSERT_TRUE(options.tile.has_value()) << chosen.status().message();
        options.tile = offered_tile(chosen.status().message());
        ASSERT_TRUE(options.tile.has_value()) << chosen.status().message();
        const Result<Plan> offered = plan(p, machine, options);
        ASSERT_TRUE(offered.ok()) << offered.status().message();
        EXPECT_EQ(offered->forward().tile, *options.tile);
        expect_fits(*offered, machine);
      }
    }
  }
  EXPECT_GT(refused, 0) << "no tile was refused, so refusals were not tested";
}

TEST(Planner, TheFitCheckSeesAStoreThatIsOneByteTooSmall) {
  Machine machine = profile("a100_80");
  const AttentionProblem p = problem(square(4096, 128, DType::bf16));
  const Plan chosen = plan(p, machine).value();
  std::int64_t need = 0;
  for (const FootprintItem& item : chosen.footprint) {
    if (item.store == "shared memory") need += item.bytes;
  }
  PlanOptions options;
  options.tile = chosen.forward().tile;
  for (Store& store : machine.stores) {
    if (store.name == "shared memory") store.capacity_bytes.value = static_cast<double>(need);
  }
  EXPECT_EQ(plan(p, machine, options)->forward().stages, chosen.forward().stages);
  for (Store& store : machine.stores) {
    if (store.name == "shared memory") store.capacity_bytes.value = static_cast<double>(need - 1);
  }
  const Result<Plan> smaller = plan(p, machine, options);
  EXPECT_TRUE(!smaller.ok() || smaller->forward().stages < chosen.forward().stages);
}

TEST(Planner, Case12_ATileTooLargeIsRefusedWithNeedHaveBreakdownAndWhatFits) {
  const Machine machine = profile("rtx4090");
  const AttentionProblem p = problem(square(4096, 256, DType::bf16));
  PlanOptions options;
  options.tile = Tile{128, 64};
  const Result<Plan> refused = plan(p, machine, options);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), StatusCode::does_not_fit);
  const std::string& message = refused.status().message();
  for (const char* part : {"tile is 128x64", "needs 131072 bytes", "\"shared memory\"",
                           "has 101376", "q tile 65536", "k tile 32768", "v tile 32768"}) {
    EXPECT_NE(message.find(part), std::string::npos) << part << " in: " << message;
  }
  options.tile = offered_tile(message);
  ASSERT_TRUE(options.tile.has_value()) << message;
  EXPECT_TRUE(plan(p, machine, options).ok());
}

TEST(Planner, Case28_SmallDevicesArePlannedForByTheirCapacity) {
  for (const char* id : {"a10", "l4", "rtx3090", "rtx5090", "m1_max", "mi250x", "ascend_310p"}) {
    const Machine machine = profile(id);
    for (const std::int64_t dim : {64, 128, 256}) {
      const Result<Plan> chosen = plan(problem(square(4096, dim, some_dtype(machine))), machine);
      ASSERT_TRUE(chosen.ok()) << id << ": " << chosen.status().message();
      expect_fits(*chosen, machine);
    }
  }
}

TEST(Planner, Case24_TheUnfusedScheduleIsCostedAndNeverChosenSilently) {
  const Machine machine = profile("h200");
  const AttentionProblem p = problem(square(8192, 128, DType::bf16));
  const Plan chosen = plan(p, machine).value();
  EXPECT_EQ(chosen.forward().schedule, Schedule::q_outer);
  EXPECT_NE(chosen.reason.find("Unfused attention would move"), std::string::npos);
  PlanOptions options;
  options.schedule = Schedule::standard;
  const Plan unfused = plan(p, machine, options).value();
  EXPECT_EQ(unfused.family, KernelFamily::modelled);
  EXPECT_GT(unfused.time.total_seconds, chosen.time.total_seconds);
  EXPECT_GT(unfused.workspace_bytes, std::int64_t{16} * 8192 * 8192 * 2);
}

TEST(Planner, Case29_RefusalsNameTheFieldItsValueAndWhatIsAccepted) {
  const Machine machine = profile("ascend_910a");
  const Result<Plan> dtype = plan(problem(square(64, 64, DType::bf16)), machine);
  ASSERT_FALSE(dtype.ok());
  EXPECT_EQ(dtype.status().code(), StatusCode::unsupported);
  EXPECT_NE(dtype.status().message().find("dtype is bf16"), std::string::npos);
  EXPECT_NE(dtype.status().message().find("accepted: f16"), std::string::npos);
  const AttentionProblem p = problem(square(64, 64, DType::f16));
  PlanOptions options;
  options.tile = Tile{0, 64};
  EXPECT_NE(plan(p, machine, options).status().message().find("options.tile.q_rows is 0"),
            std::string::npos);
  options.tile = Tile{64, std::int64_t{1} << 60};
  EXPECT_NE(plan(p, machine, options).status().message().find("options.tile.kv_rows is"),
            std::string::npos);
  options = {};
  options.workers = -1;
  EXPECT_NE(plan(p, machine, options).status().message().find("options.workers is -1"),
            std::string::npos);
  options = {};
  options.kv_splits = 0;
  EXPECT_NE(plan(p, machine, options).status().message().find("options.kv_splits is 0"),
            std::string::npos);
}

TEST(Planner, FewQueriesSplitTheKeysSoThatEveryUnitWorks) {
  AttentionSpec spec = square(1, 128, DType::bf16);
  spec.heads = 8;
  spec.kv_heads = 1;
  spec.kv_lengths.max_tokens = 65536;
  for (const char* id : {"h200", "a100_80", "rtx4090"}) {
    const Machine machine = profile(id);
    const Plan chosen = plan(problem(spec), machine).value();
    EXPECT_GT(chosen.forward().kv_splits, 1) << id;
    EXPECT_GT(chosen.workspace_bytes, 0) << id;
    PlanOptions options;
    options.batch_invariant = true;
    EXPECT_EQ(plan(problem(spec), machine, options)->forward().kv_splits, 1) << id;
  }
}

TEST(Planner, ABatchInvariantPlanDoesNotDependOnNeighbours) {
  PlanOptions options;
  options.batch_invariant = true;
  for (const Machine& machine : {profile("h200"), profile("a100_80"), this_cpu()}) {
    std::optional<Tile> tile;
    for (const std::int64_t tokens : {1, 77, 1024, 50000}) {
      for (const std::int64_t batch : {1, 9}) {
        AttentionSpec spec = square(tokens, 128, DType::bf16);
        spec.batch = batch;
        spec.q.alignment_bytes = spec.k.alignment_bytes = spec.v.alignment_bytes = 16;
        const Result<Plan> chosen = plan(problem(spec), machine, options);
        ASSERT_TRUE(chosen.ok()) << chosen.status().message();
        if (!tile) tile = chosen->forward().tile;
        EXPECT_EQ(chosen->forward().tile, *tile) << machine.id << " " << tokens;
        EXPECT_EQ(chosen->forward().kv_splits, 1);
      }
    }
  }
}

TEST(Planner, ThreadsAskedForDoNotChangeTheBits) {
  AttentionSpec spec = square(1, 128, DType::f32);
  spec.heads = spec.kv_heads = 1;
  spec.kv_lengths.max_tokens = 20000;
  Machine machine = this_cpu();
  machine.units = 16;
  PlanOptions options;
  options.workers = 1;
  const Plan one = plan(problem(spec), machine, options).value();
  options.workers = 16;
  const Plan many = plan(problem(spec), machine, options).value();
  EXPECT_EQ(one.forward().tile, many.forward().tile);
  EXPECT_EQ(one.forward().kv_splits, many.forward().kv_splits);
  EXPECT_GT(many.forward().kv_splits, 1);
}

TEST(Planner, SamePlanForTheSameQuestion) {
  const AttentionProblem p = problem(square(4096, 128, DType::bf16));
  for (const char* id : {"h200", "ascend_910b2", "mi300x", "epyc_9755"}) {
    EXPECT_EQ(plan(p, profile(id)).value(), plan(p, profile(id)).value()) << id;
  }
}

TEST(Planner, RecalledFiguresAreNamedInTheReason) {
  const Plan recalled = plan(problem(square(4096, 128, DType::bf16)), profile("rtx3090")).value();
  EXPECT_NE(recalled.reason.find("Figures only recalled: "), std::string::npos);
  EXPECT_NE(recalled.reason.find("memory_bytes_per_second"), std::string::npos);
  const Plan unknown = plan(problem(square(4096, 128, DType::bf16)), profile("mlu590")).value();
  EXPECT_NE(unknown.reason.find("no time is modelled"), std::string::npos);
  EXPECT_EQ(unknown.time.total_seconds, 0);
}

TEST(Planner, SplitCoresHandScoresOverThroughMemory) {
  const auto moved = [](const Plan& plan, std::string_view tensor) {
    for (const TensorTraffic& t : plan.traffic.tensors) {
      if (t.tensor == tensor) return t.bytes_read + t.bytes_written;
    }
    return std::int64_t{0};
  };
  const AttentionProblem p = problem(square(4096, 128, DType::f16));
  const std::int64_t scores = std::int64_t{16} * 4096 * 4096;
  const Plan split = plan(p, profile("ascend_910b2")).value();
  EXPECT_EQ(moved(split, "s"), scores * 4 * 2);
  EXPECT_EQ(moved(split, "p"), scores * 2 * 2);
  const Plan coupled = plan(p, profile("ascend_910a")).value();
  EXPECT_EQ(moved(coupled, "s"), 0);
  const Plan newer = plan(p, profile("ascend_950pr")).value();
  EXPECT_EQ(moved(newer, "s"), 0) << "scores go straight to the vector core";
  EXPECT_EQ(moved(newer, "p"), scores * 2 * 2);
}

TEST(Planner, ProblemsWhoseBytesOverflowAreRefusedByTheirSize) {
  const Machine h200 = profile("h200");
  EXPECT_TRUE(plan(problem(square(1 << 20, 128, DType::bf16)), h200).ok());
  const Result<Plan> refused = plan(problem(square(std::int64_t{1} << 40, 128, DType::bf16)), h200);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), StatusCode::invalid_argument);
  EXPECT_NE(refused.status().message().find("1099511627776 x"), std::string::npos)
      << refused.status().message();
}

TEST(Planner, RefusalsNameEveryStoreThatIsOverFilled) {
  PlanOptions options;
  options.tile = Tile{128, 256};
  const Result<Plan> refused =
      plan(problem(square(4096, 128, DType::bf16)), profile("rtx4090"), options);
  ASSERT_FALSE(refused.ok());
  const std::string& message = refused.status().message();
  for (const char* part : {"263168 bytes of \"registers\"", "has 221184",
                           "163840 bytes of \"shared memory\"", "has 101376"}) {
    EXPECT_NE(message.find(part), std::string::npos) << part << " in " << message;
  }
}

TEST(Planner, TextSaysWhatEachStoreHolds) {
  const Plan chosen = plan(problem(square(4096, 128, DType::bf16)), profile("mi300x")).value();
  const std::string text = to_text(chosen);
  for (const char* store : {"registers ", "LDS "}) {
    const std::size_t at = text.find("footprint  " + std::string(store));
    ASSERT_NE(at, std::string::npos) << store << " in\n" << text;
    EXPECT_EQ(text.find("footprint  " + std::string(store), at + 1), std::string::npos);
  }
  EXPECT_NE(text.find(" of 65536 bytes (k tile"), std::string::npos) << text;
}

TEST(Planner, ChoosesTheSameOnACpuAtAnyClock) {
  // The clock of this machine is timed, so a plan that followed it would differ between two runs.
  const Machine machine = this_cpu();
  for (const double faster : {0.5, 0.97, 1.03, 2.0}) {
    Machine other = machine;
    for (Figure* rate :
         {&other.clock_hz, &other.f32_flops_per_second, &other.bf16_flops_per_second}) {
      rate->value *= faster;
    }
    for (const std::int64_t tokens : {1, 100, 512, 1000, 4096, 131072}) {
      for (const bool causal : {false, true}) {
        AttentionSpec spec = square(tokens, 128, some_dtype(machine));
        spec.mask.causal = causal;
        const AttentionProblem p = problem(spec);
        EXPECT_EQ(plan(p, other)->forward(), plan(p, machine)->forward()) << tokens;
      }
    }
  }
}

TEST(Planner, UnfusedIsCostedAndNeverFasterOnACpu) {
  // As measured (bench/LOG.md): even with S in cache its passes cost what the tiled walk saves.
  for (const std::int64_t tokens : {1, 16, 64, 256, 1024, 4096}) {
    for (const std::int64_t heads : {1, 16}) {
      AttentionSpec spec = square(tokens, 64, DType::f32);
      spec.heads = spec.kv_heads = heads;
      PlanOptions options;
      options.schedule = Schedule::standard;
      const AttentionProblem p = problem(spec);
      const Plan chosen = plan(p, this_cpu()).value();
      EXPECT_EQ(chosen.forward().schedule, Schedule::q_outer);
      EXPECT_GT(plan(p, this_cpu(), options)->time.total_seconds, chosen.time.total_seconds)
          << tokens << " tokens, " << heads << " heads";
      EXPECT_NE(chosen.reason.find("Unfused attention would move"), std::string::npos);
    }
  }
}

TEST(Planner, GivesEveryCoreOfManyATask) {
  // 8 heads on 16 cores: tiles that a single core would like best leave half of them idle.
  Machine machine = this_cpu();
  const auto cores = static_cast<double>(machine.units);
  machine.units = 16;
  machine.f32_flops_per_second.value *= 16 / cores;
  machine.bf16_flops_per_second.value *= 16 / cores;
  for (const bool causal : {false, true}) {
    AttentionSpec spec = square(1024, 128, DType::f32);
    spec.heads = spec.kv_heads = 8;
    spec.mask.causal = causal;
    const Plan chosen = plan(problem(spec), machine).value();
    const std::int64_t tasks = 8 * schedule::ceil_div(1024, chosen.forward().tile.q_rows);
    EXPECT_GE(tasks, 16) << to_text(chosen);
    EXPECT_EQ(chosen.forward().workers, 16);
  }
}

TEST(Planner, SharesWorkInPartsSmallEnoughToEndTogether) {
  // One task a core, of tall tiles or split keys, packs the least, but waits for the slowest core.
  Machine machine = profile("xeon_8480p");
  const double part = 16.0 / static_cast<double>(machine.units);
  machine.units = 16;
  machine.f32_flops_per_second.value *= part;
  machine.bf16_flops_per_second.value *= part;
  for (const std::int64_t dim : {64, 128}) {
    AttentionSpec spec = square(1024, dim, DType::f32);
    spec.heads = spec.kv_heads = 8;
    const Plan chosen = plan(problem(spec), machine).value();
    EXPECT_EQ(chosen.forward().kv_splits, 1) << to_text(chosen);
    EXPECT_GE(8 * schedule::ceil_div(1024, chosen.forward().tile.q_rows), 3 * 16)
        << to_text(chosen);
  }
}

TEST(Planner, TextAndJsonCarryEveryFigure) {
  const Plan chosen = plan(problem(square(4096, 128, DType::bf16)), profile("h200")).value();
  const std::string text = to_text(chosen);
  for (const char* part : {"hopper_forward on h200", "tile 128x", "shared memory", "registers",
                           "traffic", "off chip", "time", "reason"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " in\n" << text;
  }
  const std::string json = to_json(chosen);
  for (const char* part :
       {"\"machine\": \"h200\"", "\"q_rows\"", "\"kv_rows\"", "\"footprint_bytes\"",
        "\"bytes_read\"", "\"total_seconds\"", "\"workspace_bytes\"", "\"qk_dim\": 128",
        "\"off_chip\"", "\"reason\""}) {
    EXPECT_NE(json.find(part), std::string::npos) << part << " in\n" << json;
  }
}

}  // namespace
}  // namespace tilewright
