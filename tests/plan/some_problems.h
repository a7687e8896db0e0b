// tests/plan/some_problems.h: problems and machines that tests of plans start from.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <regex>
#include <string>

#include "tilewright/plan.h"

namespace tilewright {

inline AttentionSpec square(std::int64_t tokens, std::int64_t dim, DType dtype) {
  AttentionSpec spec;
  spec.heads = spec.kv_heads = 16;
  spec.q_lengths.max_tokens = spec.kv_lengths.max_tokens = tokens;
  spec.qk_dim = dim;
  spec.dtype = dtype;
  return spec;
}

inline AttentionProblem problem(const AttentionSpec& spec) {
  const Result<AttentionProblem> made = AttentionProblem::create(spec);
  EXPECT_TRUE(made.ok()) << made.status().message();
  return made.value();
}

inline Machine profile(std::string_view id) {
  return machine_profile(id).value();
}

/// "... fits: 128x64" -> 128x64
inline std::optional<Tile> offered_tile(const std::string& message) {
  std::smatch match;
  if (!std::regex_search(message, match, std::regex("the best tile that fits: (\\d+)x(\\d+)"))) {
    return std::nullopt;
  }
  return Tile{std::stoll(match[1]), std::stoll(match[2])};
}

}  // namespace tilewright
