// tests/conformance/repeat_test.cpp: the same bits again: on repeated runs, on any number of
// workers, whatever the neighbours; and lengths that change in place.
#include <gtest/gtest.h>

#include "conformance/check.h"
#include "reference/random_problem.h"
#include "reference/tolerance.h"
#include "support/scale.h"

namespace tilewright::conformance {
namespace {

Case mixed_case(DType dtype) {
  Case what = fixed_case(150, 210, dtype);
  what.spec.batch = 3;
  what.spec.heads = 4;
  what.spec.kv_heads = 2;
  what.spec.mask.causal = true;
  what.spec.q_lengths.kind = what.spec.kv_lengths.kind = LengthKind::per_sequence;
  what.q_lengths = {150, 1, 77};
  what.kv_lengths = {33, 210, 129};
  return what;
}

TEST(Repeat, Case13_forward_gives_the_same_bits_on_every_run) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    ProblemData data = make(mixed_case(dtype));
    for (const auto& variant : variants()) {
      SCOPED_TRACE(variant->name());
      if (!run_one(*variant, data)) continue;
      const auto bits = result_bits(data);
      for (std::int64_t run = 0; run < test::scaled(30); ++run) {
        ASSERT_TRUE(run_one(*variant, data));
        ASSERT_EQ(bits, result_bits(data)) << "run " << run;
      }
    }
  }
}

TEST(Repeat, any_number_of_workers_gives_the_same_bits) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    ProblemData data = make(mixed_case(dtype));
    for (const auto& variant : variants()) {
      SCOPED_TRACE(variant->name());
      if (!run_one(*variant, data, {.workers = 1})) continue;
      const auto bits = result_bits(data);
      for (const std::int64_t workers : {2, 3, 61}) {
        ASSERT_TRUE(run_one(*variant, data, {.workers = workers}));
        ASSERT_EQ(bits, result_bits(data)) << workers << " workers";
      }
    }
  }
}

// One sequence among others, at another place and with larger bounds: its bits, alone and there.
struct Placement {
  const char* name;
  LengthKind kind;
  std::vector<std::int32_t> q_tokens, kv_tokens;
  std::size_t place;
  std::int64_t slack;  ///< added to the bounds
};

Case placed(const Placement& placement, DType dtype) {
  Case what = fixed_case(0, 0, dtype);
  what.name = placement.name;
  what.spec.batch = std::ssize(placement.q_tokens);
  what.spec.heads = 4;
  what.spec.kv_heads = 2;
  what.spec.mask.causal = true;
  const auto lengths = [&](const std::vector<std::int32_t>& tokens, Lengths& bounds,
                           std::vector<std::int32_t>& values) {
    bounds.kind = placement.kind;
    std::int32_t end = 0;
    if (placement.kind == LengthKind::cumulative) values.push_back(0);
    for (const std::int32_t count : tokens) {
      end += count;
      bounds.max_tokens = std::max<std::int64_t>(bounds.max_tokens, count + placement.slack);
      values.push_back(placement.kind == LengthKind::cumulative ? end : count);
    }
    if (placement.kind == LengthKind::cumulative) bounds.total_tokens = end;
  };
  lengths(placement.q_tokens, what.spec.q_lengths, what.q_lengths);
  lengths(placement.kv_tokens, what.spec.kv_lengths, what.kv_lengths);
  return what;
}

TEST(Repeat, Case15_batch_invariant_bits_whatever_the_neighbours) {
  constexpr std::int32_t kQ = 45;
  constexpr std::int32_t kKv = 333;
  std::vector<Placement> placements;
  for (const LengthKind kind : {LengthKind::per_sequence, LengthKind::cumulative}) {
    placements.push_back({"alone", kind, {kQ}, {kKv}, 0, 0});
    placements.push_back({"alone, larger bounds", kind, {kQ}, {kKv}, 0, 500});
    placements.push_back({"first of many", kind, {kQ, 1, 90, 3}, {kKv, 7, 512, 60}, 0, 0});
    placements.push_back({"last of many", kind, {13, 130, 0, kQ}, {700, 9, 5, kKv}, 3, 0});
  }
  for (const DType dtype : {DType::f32, DType::bf16}) {
    for (const auto& variant : variants()) {
      std::vector<float> first;
      for (const Placement& placement : placements) {
        const Case what = placed(placement, dtype);
        SCOPED_TRACE(variant->name() + ": " + to_text(what));
        ProblemData data = make(what);
        const auto value = [&](std::int64_t salt) {
          return [&, salt](const ElementIndex& e) {
            const bool ours = e.batch == static_cast<std::int64_t>(placement.place);
            const std::int64_t mix =
                (e.token * 131 + e.head * 37 + e.dim * 7 + salt) * (ours ? 1 : 3) % 97;
            return static_cast<float>(mix) / 48.0f - 1.0f;
          };
        };
        data.set(TensorId::q, value(1));
        data.set(TensorId::k, value(2));
        data.set(TensorId::v, value(3));
        if (!run_one(*variant, data, {.batch_invariant = true})) continue;
        const AttentionTensors t = data.tensors();
        std::vector<float> bits;
        for (const auto& row : all_rows(data.problem(), t)) {
          if (row.batch != static_cast<std::int64_t>(placement.place)) continue;
          const auto queries = token_range(what.spec.q_lengths, t.q_lengths, row.batch);
          const std::int64_t at = queries.offset(data.problem().o(), row.query, row.head);
          for (std::int64_t d = 0; d < 64; ++d) {
            bits.push_back(reference::load(t.o, dtype, at + d));
          }
          bits.push_back(t.lse[lse_index(data.problem(), t, row)]);
        }
        if (first.empty()) first = bits;
        EXPECT_EQ(first, bits);
      }
    }
  }
}

// As a replayed graph does it: the problem and its plan stay, the lengths change in place.
TEST(Repeat, Case25_lengths_are_read_when_running_only) {
  Case what = mixed_case(usual_dtype());
  ProblemData data = make(what);
  auto* q_lengths = const_cast<std::int32_t*>(data.tensors().q_lengths);
  auto* kv_lengths = const_cast<std::int32_t*>(data.tensors().kv_lengths);
  // Shorter than at first, so that every byte they cover holds a number.
  for (const auto& [q, kv] : std::initializer_list<std::pair<std::int32_t, std::int32_t>>{
           {150, 33}, {0, 0}, {17, 32}, {149, 1}}) {
    q_lengths[0] = q;
    kv_lengths[0] = kv;
    for (const auto& variant : variants()) {
      SCOPED_TRACE(variant->name() + " lengths " + std::to_string(q) + ", " + std::to_string(kv));
      data.prepare_run();
      const auto plan = variant->run(call_of(data), {});
      ASSERT_TRUE(plan.ok()) << plan.status().message();
      const auto result =
          compare(data.problem(), data.tensors(), all_rows(data.problem(), data.tensors()));
      EXPECT_TRUE(result.ok()) << to_text(result, *plan, 1);
    }
  }
}

}  // namespace
}  // namespace tilewright::conformance
