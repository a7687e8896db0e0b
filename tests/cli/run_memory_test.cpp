// tests/cli/run_memory_test.cpp: `tilewright run` needs little memory beyond its inputs and
// outputs.
//
// A program of its own, since sanitizers take memory that this would count.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "file_text.h"
#include "run_command.h"

namespace tilewright::test {
namespace {

TEST(RunMemory, LongSequencesTakeLittleBeyondInputsAndOutputs) {
  const ScratchFolder folder;
  const std::vector<float> values(131072 * 64, 0.5f);
  for (const char* name : {"q.npy", "k.npy", "v.npy"}) {
    folder.write(name, npy_f32("(131072, 64)", values));
  }
  // A narrow window keeps this quick; nothing else about its memory differs from full attention.
  const CommandResult result = run_command(
      {"run", "--json", "--window", "63,0", "--q", folder.path("q.npy"), "--k",
       folder.path("k.npy"), "--v", folder.path("v.npy"), "--out", folder.path("o.npy")});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto printed = nlohmann::json::parse(result.out);
  const std::int64_t tensor_bytes = 131072 * 64 * 4;
  EXPECT_EQ(printed["input_bytes"], 3 * tensor_bytes);
  const auto peak = printed["peak_resident_bytes"].get<std::int64_t>();
  EXPECT_GT(peak, 3 * tensor_bytes);
  EXPECT_LT(peak - printed["input_bytes"].get<std::int64_t>() -
                printed["output_bytes"].get<std::int64_t>(),
            64'000'000);
}

}  // namespace
}  // namespace tilewright::test
