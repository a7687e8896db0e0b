// tests/cli/planning_test.cpp: what can be asked of devices: machines, plan, simulate, sweep, info.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "run_command.h"

namespace tilewright::test {
namespace {

using nlohmann::json;

json json_of(std::vector<std::string> words) {
  words.emplace_back("--json");
  const CommandResult result = run_command(words);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const json printed = json::parse(result.out, nullptr, false);
  EXPECT_FALSE(printed.is_discarded()) << result.out;
  return printed;
}

TEST(Planning, MachinesListsEveryProfileAndMarksRecalledFigures) {
  const CommandResult list = run_command({"machines"});
  EXPECT_EQ(list.exit_code, 0);
  for (const char* part : {"h200", "ascend_910b2", "mi300x", "recalled"}) {
    EXPECT_NE(list.out.find(part), std::string::npos) << part;
  }
  EXPECT_EQ(json_of({"machines"}).size(), 33u);
  const CommandResult one = run_command({"machines", "rtx4090"});
  EXPECT_NE(one.out.find("recalled: NVIDIA Ada GPU architecture whitepaper"), std::string::npos);
  const CommandResult none = run_command({"machines", "rtx4091"});
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_NE(none.err.find("did you mean"), std::string::npos) << none.err;
}

TEST(Planning, CompareCostsEverySchedule) {
  const json ways = json_of({"plan", "--device", "a100_80", "--dtype", "bf16", "--compare"});
  ASSERT_EQ(ways.size(), 3u);
  EXPECT_EQ(ways[0]["schedule"], "q_outer");
  EXPECT_EQ(ways[1]["schedule"], "kv_outer");
  EXPECT_EQ(ways[2]["schedule"], "standard");
  for (const json& way : ways) EXPECT_GT(way["time"]["total_seconds"], 0.0);
}

TEST(Planning, CompareAnswersForATileThatIsAskedFor) {
  const std::vector<std::string> common = {"plan", "--device",  "mi300x", "--dtype",
                                           "bf16", "--compare", "--tile"};
  const auto with = [&](const char* tile) {
    std::vector<std::string> words = common;
    words.emplace_back(tile);
    return words;
  };
  const CommandResult small = run_command(with("64x64"));
  EXPECT_EQ(small.exit_code, 0) << small.err;
  for (const char* part : {"the planner's choice", "asked for: ", "times the time", "unfused",
                           "64x64 was asked for and fits"}) {
    EXPECT_NE(small.out.find(part), std::string::npos) << part << " in\n" << small.out;
  }
  EXPECT_EQ(json_of(with("64x64")).size(), 4u);
  const CommandResult large = run_command(with("128x256"));
  EXPECT_EQ(large.exit_code, 0) << large.err;
  for (const char* part :
       {"asked for: refused", "refused    tile is 128x256", "LDS", "has 65536"}) {
    EXPECT_NE(large.out.find(part), std::string::npos) << part << " in\n" << large.out;
  }
  EXPECT_NE(json_of(with("128x256"))[1]["refused"].get<std::string>().find("LDS"),
            std::string::npos);
}

TEST(Planning, Case12_ForcingATileThatIsTooLargeSaysWhatFits) {
  const CommandResult refused = run_command(
      {"plan", "--device", "rtx4090", "--dtype", "bf16", "--dim", "256", "--tile", "128x64"});
  EXPECT_EQ(refused.exit_code, 2);
  for (const char* part : {"131072", "101376", "the best tile that fits"}) {
    EXPECT_NE(refused.err.find(part), std::string::npos) << refused.err;
  }
}

TEST(Planning, SimulateCountsWhatThePlanForesaw) {
  for (const char* schedule : {"q_outer", "kv_outer", "standard"}) {
    const json run = json_of({"simulate", "--sram", "65536", "--q-len", "100", "--dim", "32",
                              "--tile", "32x48", "--schedule", schedule, "--causal"});
    EXPECT_EQ(run["equals_plan"], true) << schedule;
    EXPECT_GT(run["bytes_read"], 0);
    EXPECT_GT(run["bytes_written"], 0);
    EXPECT_LE(run["sram_peak_bytes"], 65536);
    EXPECT_TRUE(run["tensors"].contains("k"));
  }
  const json longer = json_of({"simulate", "--sram", "262144", "--q-len", "65536", "--dim", "32",
                               "--tile", "128x128", "--bytes-only"});
  EXPECT_EQ(longer["equals_plan"], true);
  EXPECT_EQ(longer["tensors"]["k"]["bytes_read"], 65536ll / 128 * 65536 * 32 * 4);
  EXPECT_EQ(run_command({"simulate", "--q-len", "65536"}).exit_code, 2);
  const CommandResult refused = run_command({"simulate", "--sram", "1000", "--tile", "64x64"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_NE(refused.err.find("does not fit"), std::string::npos) << refused.err;
}

TEST(Planning, SweepMarksTheLimit) {
  const json sweep = json_of({"sweep", "--device", "a100_80", "--dtype", "bf16"});
  bool fits = false;
  bool refused = false;
  for (const json& point : sweep["by_q_rows"]) {
    fits = fits || point["fits"].get<bool>();
    refused = refused || !point["fits"].get<bool>();
  }
  EXPECT_TRUE(fits);
  EXPECT_TRUE(refused);
  EXPECT_NE(run_command({"sweep", "--device", "a100_80", "--dtype", "bf16"}).out.find("refused"),
            std::string::npos);
}

TEST(Planning, SweepRunsTheTilesOfThisProcessor) {
  const json sweep =
      json_of({"sweep", "--measure", "--q-len", "128", "--heads", "1", "--dim", "32"});
  for (const json& point : sweep["by_kv_rows"]) {
    EXPECT_EQ(point.contains("measured_seconds"), point["fits"].get<bool>());
  }
}

TEST(Planning, InfoMeasuresOrSaysWhatItDoubts) {
  const json info = json_of({"info", "--measure"});
  EXPECT_EQ(info["machine"]["exp_per_second"]["grade"], "measured");
  EXPECT_GT(info["copy_bytes_per_second"]["value"], 0.0);
  const double share = info["f32_peak_share"];
  const bool trusted = share >= 0.9 && share <= 1.05;
  EXPECT_TRUE(trusted || !info["doubts"].empty());
}

}  // namespace
}  // namespace tilewright::test
