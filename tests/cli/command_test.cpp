// tests/cli/command_test.cpp: help, version and what each other subcommand prints.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "file_text.h"
#include "run_command.h"
#include "support/scale.h"
#include "tilewright/version.h"

namespace tilewright::test {
namespace {

using nlohmann::json;

json json_of(const std::vector<std::string>& words) {
  const CommandResult result = run_command(words);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  const json printed = json::parse(result.out, nullptr, false);
  EXPECT_FALSE(printed.is_discarded()) << result.out;
  return printed;
}

TEST(Command, HelpIsEverywhereWithExamples) {
  const CommandResult top = run_command({"--help"});
  EXPECT_EQ(top.exit_code, 0);
  for (const char* sub : {"demo", "run", "plan", "verify", "bench", "info"}) {
    EXPECT_NE(top.out.find(sub), std::string::npos) << sub;
    const CommandResult help = run_command({sub, "--help"});
    EXPECT_EQ(help.exit_code, 0) << sub;
    EXPECT_NE(help.out.find("--json"), std::string::npos) << sub;
    EXPECT_NE(help.out.find(std::string("tilewright ") + sub), std::string::npos) << sub;
    EXPECT_EQ(help.err, "") << sub;
  }
}

TEST(Command, VersionIsTheLibrarys) {
  const CommandResult result = run_command({"--version"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.out, std::string(version()) + "\n");
}

TEST(Command, InfoNamesThisMachine) {
  const json info = json_of({"info", "--json"});
  EXPECT_EQ(info["version"], version());
  EXPECT_GE(info["machine"]["units"], 1);
  EXPECT_FALSE(info["machine"]["stores"].empty());
  EXPECT_EQ(run_command({"info"}).exit_code, 0);
}

TEST(Command, PlanPrintsTextAndJson) {
  const std::vector<std::string> words = {"plan", "--q-len",  "512",     "--dim",
                                          "64",   "--causal", "top-left"};
  EXPECT_NE(run_command(words).out.find("cpu"), std::string::npos);
  std::vector<std::string> machine = words;
  machine.emplace_back("--json");
  EXPECT_TRUE(json_of(machine).is_object());
}

TEST(Command, VerifyRepeatsFromItsSeed) {
  const std::string count = std::to_string(scaled(40));
  const json first = json_of({"verify", "--seed", "11", "--count", count, "--json"});
  EXPECT_EQ(first["passed"], scaled(40));
  EXPECT_EQ(first["failed"], 0);
  EXPECT_EQ(first["seed"], 11);
  EXPECT_EQ(json_of({"verify", "--seed", "11", "--count", count, "--json"}), first);
  EXPECT_NE(run_command({"verify", "--count", "1"}).out.find("seed "), std::string::npos);
}

TEST(Command, BenchTimesBothSchedules) {
  const json bench =
      json_of({"bench", "--q-len", "128", "--heads", "2", "--dim", "16", "--runs", "3", "--json"});
  ASSERT_EQ(bench["contenders"].size(), 2u);
  EXPECT_EQ(bench["contenders"][1]["schedule"], "standard");
  for (const json& contender : bench["contenders"]) {
    EXPECT_EQ(contender["all_seconds"].size(), 3u);
    EXPECT_EQ(contender["flops"], 4.0 * 2 * 128 * 128 * 16);
    EXPECT_GT(contender["gflop_per_second"], 0);
  }
  EXPECT_GT(bench["time_ratio_second_over_first"], 0);
  EXPECT_EQ(run_command({"bench", "--q-len", "64", "--runs", "1", "--against", "none"}).exit_code,
            0);
}

TEST(Command, DemoShowsBothSchedulesAndKeepsItsFilesWhenAsked) {
  const ScratchFolder folder;
  const json demo =
      json_of({"demo", "--lengths", "96,200", "--keep", folder.path("kept"), "--json"});
  ASSERT_EQ(demo["rows"].size(), 4u);
  for (const json& row : demo["rows"]) {
    EXPECT_GT(row["seconds"], 0) << row;
    EXPECT_GT(row["peak_resident_bytes"], 1'000'000) << row;
    EXPECT_GT(row["max_error"], 0) << row;
    EXPECT_LT(row["max_error"], 1e-5) << row;
  }
  EXPECT_EQ(demo["rows"][3]["score_matrix_bytes"], 200 * 200 * 4);
  for (const char* name : {"q.npy", "k.npy", "v.npy", "o.npy"}) {
    EXPECT_TRUE(std::filesystem::exists(folder.path("kept") + "/" + name)) << name;
  }
}

TEST(Command, DemoOfLongSequencesSaysWhatStandardAttentionWouldNeed) {
  // The second length is beyond any budget of a second: it must be said, not tried.
  const CommandResult result = run_command({"demo", "--lengths", "64,1048576", "--budget", "1"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find("1,048,576 tokens would take"), std::string::npos) << result.out;
}

TEST(Command, DemoLeavesNothingBehindWhenInterrupted) {
  const ScratchFolder folder;
  const std::string line = "TMPDIR='" + folder.path("") +
                           "' timeout -s INT 1 '" TILEWRIGHT_COMMAND
                           "' demo --lengths 64,131072 --budget 80000 > /dev/null 2>&1";
  const int state = std::system(line.c_str());
  EXPECT_EQ(WEXITSTATUS(state), 124);  // it was still running
  EXPECT_TRUE(folder.names().empty());
}

TEST(Command, PlanReasonsAboutDevicesThatAreNotHere) {
  const CommandResult result = run_command({"plan", "--device", "h200", "--dtype", "bf16"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find("h200"), std::string::npos) << result.out;
}

TEST(Command, AFullStandardOutputIsAFailure) {
  for (const char* words : {" info", " --help", " plan --help", " --version"}) {
    const std::string line = TILEWRIGHT_COMMAND + std::string(words) + " > /dev/full 2> /dev/null";
    const int state = std::system(line.c_str());
    EXPECT_EQ(WEXITSTATUS(state), 1) << words;
  }
}

}  // namespace
}  // namespace tilewright::test
