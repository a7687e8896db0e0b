// tests/conformance/check.h: runs a case on every variant and judges what comes back.
#pragma once

#include <cstddef>
#include <vector>

#include "conformance/variant.h"
#include "reference/attention.h"
#include "reference/problem_data.h"
#include "reference/tolerance.h"

namespace tilewright::conformance {

using reference::all_rows;
using reference::Case;
using reference::compare;
using reference::ElementIndex;
using reference::expected_rows;
using reference::lse_index;
using reference::ProblemData;
using reference::sample_rows;
using reference::TensorId;
using reference::to_text;
using reference::token_range;

/// A case of equal q and kv heads, dims 64 and fixed lengths, to start from.
Case fixed_case(std::int64_t q_len, std::int64_t kv_len, DType dtype = usual_dtype());

ProblemData make(const Case& what);
Call call_of(ProblemData& data);

/// Every variant, every row within tolerance, nothing touched outside; at most max_rows rows are
/// judged when it is positive.
void expect_conforms(ProblemData& data, const RunSettings& settings = {},
                     std::int64_t max_rows = 0);
void expect_conforms(const Case& what, const RunSettings& settings = {});

/// Runs one variant on fresh poison; false, with the failure recorded, unless it succeeded.
bool run_one(const Variant& variant, ProblemData& data, const RunSettings& settings = {});

/// The bytes of o and lse that belong to rows, in order.
std::vector<std::byte> result_bits(const ProblemData& data);

}  // namespace tilewright::conformance
