// tests/plan/golden_plans_test.cpp: the plans of every profile, held to a file that people can
// read.
//
// To regenerate after a change that is meant: TILEWRIGHT_UPDATE_GOLDEN=1 plan_test, then read the
// difference.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "tilewright/plan.h"

namespace tilewright {
namespace {

const char* const kFile = TILEWRIGHT_GOLDEN_PLANS;

/// 16 bits wide if the machine has a rate for such a type.
DType widest_known(const Machine& machine) {
  return machine.bf16_flops_per_second.known() || !machine.f16_flops_per_second.known()
             ? DType::bf16
             : DType::f16;
}

std::string line(const std::string& id, std::int64_t dim, std::int64_t tokens) {
  const Machine machine = machine_profile(id).value();
  AttentionSpec spec;
  spec.heads = spec.kv_heads = 16;
  spec.qk_dim = dim;
  spec.q_lengths.max_tokens = spec.kv_lengths.max_tokens = tokens;
  spec.dtype = widest_known(machine);
  const Result<Plan> chosen = plan(AttentionProblem::create(spec).value(), machine);
  char text[256];
  if (!chosen.ok()) {
    std::snprintf(text, sizeof text, "%-13s %4s d%-3lld n%-6lld refused: ", id.c_str(),
                  std::string(name(spec.dtype)).c_str(), static_cast<long long>(dim),
                  static_cast<long long>(tokens));
    return text + chosen.status().message();
  }
  const ForwardPlan& forward = chosen->forward();
  std::string stores;
  for (const FootprintItem& item : chosen->footprint) {
    if (stores.find(item.store + " ") != std::string::npos) continue;
    std::int64_t bytes = 0;
    for (const FootprintItem& other : chosen->footprint) {
      if (other.store == item.store) bytes += other.bytes;
    }
    stores += (stores.empty() ? "" : ", ") + item.store + " " + std::to_string(bytes);
  }
  std::snprintf(
      text, sizeof text, "%-13s %4s d%-3lld n%-6lld %-14s %4lldx%-4lld x%lld %10.4g GB", id.c_str(),
      std::string(name(spec.dtype)).c_str(), static_cast<long long>(dim),
      static_cast<long long>(tokens), std::string(name(chosen->family)).c_str(),
      static_cast<long long>(forward.tile.q_rows), static_cast<long long>(forward.tile.kv_rows),
      static_cast<long long>(forward.stages), static_cast<double>(chosen->traffic.bytes()) / 1e9);
  return std::string(text) + "  " + stores;
}

std::string all_lines() {
  std::string lines =
      "# machine, dtype, head dim, tokens (16 heads), kernels, tile x stages, bytes moved on and "
      "off "
      "chip, bytes in each store\n";
  for (const std::string& id : machine_profile_ids()) {
    for (const std::int64_t tokens : {4096, 131072}) {
      for (const std::int64_t dim : {64, 128, 256}) lines += line(id, dim, tokens) + "\n";
    }
  }
  return lines;
}

TEST(GoldenPlans, AreWhatTheFileSays) {
  const std::string now = all_lines();
  if (std::getenv("TILEWRIGHT_UPDATE_GOLDEN") != nullptr) {
    std::ofstream(kFile) << now;
    GTEST_SKIP() << "wrote " << kFile;
  }
  std::ifstream file(kFile);
  ASSERT_TRUE(file) << kFile;
  std::ostringstream stored;
  stored << file.rdbuf();
  std::istringstream expected(stored.str());
  std::istringstream actual(now);
  std::string want;
  std::string got;
  int number = 0;
  while (std::getline(expected, want)) {
    ++number;
    ASSERT_TRUE(std::getline(actual, got)) << "line " << number << " is missing";
    EXPECT_EQ(got, want) << "line " << number
                         << "; TILEWRIGHT_UPDATE_GOLDEN=1 rewrites the file if this is meant";
  }
  EXPECT_FALSE(std::getline(actual, got)) << "a line too many: " << got;
}

}  // namespace
}  // namespace tilewright
