// report/planned.h: entries that were planned and not run, so that the charts have lengths to show.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "report/report.h"

namespace tilewright::report {

/// "Attention over 4,096 tokens: 8 heads of dim 64, f32, causal".
std::string describe(const AttentionProblem& problem);

/// What a schedule is called on the page: "tiled", "standard", ...
std::string series_name(Schedule schedule);

/// The spec at another length, with the same operands otherwise, contiguous and not packed. Queries
/// scale with keys where the two are equal, and stay as they are where not.
AttentionSpec at_length(const AttentionSpec& spec, std::int64_t tokens);

/// Lengths around one: an eighth of it to four times it, by doubling.
std::vector<std::int64_t> lengths_around(std::int64_t tokens);

/// Adds plans for the tiled and the standard schedule at lengths that have no entry of that series
/// yet, and orders entries by length. The subject stays the subject.
void add_planned(Contents& contents, const std::vector<std::int64_t>& lengths);

}  // namespace tilewright::report
