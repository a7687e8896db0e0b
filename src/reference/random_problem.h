// src/reference/random_problem.h: random problems over every feature, each repeatable from a seed.
#pragma once

#include <cstdint>
#include <string>

#include "reference/problem_data.h"

namespace tilewright::reference {

/// What random problems may be: bounds on their size.
struct RandomLimits {
  std::int64_t max_batch = 4;
  std::int64_t max_heads = 6;
  std::int64_t max_tokens = 300;
  std::int64_t max_dim = 256;
  double max_flops = 2e8;
};

/// The same seed and limits give the same case everywhere.
Case random_case(std::uint64_t seed, const RandomLimits& limits = {});

/// The case in one line: every field that is not at its default.
std::string to_text(const Case& what);

}  // namespace tilewright::reference
