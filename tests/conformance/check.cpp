// tests/conformance/check.cpp: runs a case on every variant and judges what comes back.
#include "conformance/check.h"

#include <gtest/gtest.h>

#include "reference/random_problem.h"
#include "reference/tolerance.h"

namespace tilewright::conformance {

Case fixed_case(std::int64_t q_len, std::int64_t kv_len, DType dtype) {
  Case what;
  what.name = "fixed";
  what.spec.q_lengths.max_tokens = q_len;
  what.spec.kv_lengths.max_tokens = kv_len;
  what.spec.qk_dim = 64;
  what.spec.dtype = dtype;
  return what;
}

ProblemData make(const Case& what) {
  Result<ProblemData> data = ProblemData::create(what);
  if (!data.ok()) {
    ADD_FAILURE() << data.status().message() << "\n" << to_text(what);
    std::abort();
  }
  return *std::move(data);
}

Call call_of(ProblemData& data) {
  Call call{&data.problem(), data.tensors(), {}};
  for (std::size_t i = 0; i < reference::kTensorCount; ++i) {
    const auto id = static_cast<TensorId>(i);
    const reference::Buffer& buffer = data.buffer(id);
    if (!buffer.present()) continue;
    call.buffers.push_back({buffer.data, buffer.bytes, id == TensorId::o || id == TensorId::lse});
  }
  return call;
}

namespace {

// The plan's text when the run succeeded as it should.
std::optional<std::string> run_checked(const Variant& variant, ProblemData& data,
                                       const RunSettings& settings) {
  data.prepare_run();
  const Result<std::string> plan = variant.run(call_of(data), settings);
  if (const auto field = variant.refuses(data.problem().spec())) {
    EXPECT_EQ(plan.status().code(), StatusCode::unsupported) << "for " << *field;
    EXPECT_NE(plan.status().message().find(*field), std::string::npos) << plan.status().message();
    return std::nullopt;
  }
  EXPECT_TRUE(plan.ok()) << plan.status().message();
  const auto violation = data.violation();
  EXPECT_EQ(violation, std::nullopt) << *violation;
  if (!plan.ok()) return std::nullopt;
  return *plan;
}

std::string context(const Variant& variant, const ProblemData& data) {
  return variant.name() + ": " + to_text(data.what());
}

}  // namespace

bool run_one(const Variant& variant, ProblemData& data, const RunSettings& settings) {
  SCOPED_TRACE(context(variant, data));
  return run_checked(variant, data, settings).has_value();
}

void expect_conforms(ProblemData& data, const RunSettings& settings, std::int64_t max_rows) {
  const AttentionProblem& problem = data.problem();
  const AttentionTensors tensors = data.tensors();
  const auto rows = max_rows > 0 ? sample_rows(problem, tensors, max_rows, data.what().seed)
                                 : all_rows(problem, tensors);
  const auto expected = expected_rows(problem, tensors, rows);
  for (const auto& variant : variants()) {
    SCOPED_TRACE(context(*variant, data));
    const auto plan = run_checked(*variant, data, settings);
    if (!plan) continue;
    const reference::Comparison result = compare(problem, tensors, expected);
    EXPECT_TRUE(result.ok()) << to_text(result, *plan, data.what().seed);
  }
}

void expect_conforms(const Case& what, const RunSettings& settings) {
  ProblemData data = make(what);
  expect_conforms(data, settings);
}

std::vector<std::byte> result_bits(const ProblemData& data) {
  std::vector<std::byte> bits;
  for (const TensorId id : {TensorId::o, TensorId::lse}) {
    const reference::Buffer& buffer = data.buffer(id);
    for (std::size_t i = 0; i < buffer.bytes; ++i) {
      if (buffer.used[i]) bits.push_back(buffer.data[i]);
    }
  }
  return bits;
}

}  // namespace tilewright::conformance
