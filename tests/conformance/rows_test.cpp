// tests/conformance/rows_test.cpp: which rows and keys there are: rows without keys, zero lengths,
// unequal lengths, windows.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "conformance/check.h"
#include "reference/element.h"
#include "reference/random_problem.h"

namespace tilewright::conformance {
namespace {

constexpr std::int64_t kFarthest = std::numeric_limits<std::int64_t>::max();

// Every way in which a row may see no key.
std::vector<Case> cases_with_empty_rows(DType dtype) {
  std::vector<Case> cases;
  const auto add = [&](const char* name, std::int64_t q_len, std::int64_t kv_len) -> Case& {
    Case what = fixed_case(q_len, kv_len, dtype);
    what.name = name;
    cases.push_back(what);
    return cases.back();
  };
  add("no keys at all", 5, 0);
  add("causal, more queries than keys", 70, 20).spec.mask.causal = true;
  add("window beyond the last key", 40, 20).spec.mask = {false, Diagonal::top_left, 3, 3};
  add("window before the first key", 60, 20).spec.mask = {false, Diagonal::bottom_right, 3, 3};
  Case& boolean = add("boolean bias masks all", 33, 40);
  boolean.spec.bias = {BiasKind::boolean, DType::f32, 0, 0, 40, 1};
  Case& additive = add("additive bias of -inf", 33, 40);
  additive.spec.bias = {BiasKind::additive, DType::bf16, 0, 0, 40, 1};
  Case& padded = add("padded sequences without keys", 20, 30);
  padded.spec.batch = 3;
  padded.spec.kv_lengths.kind = LengthKind::per_sequence;
  padded.kv_lengths = {0, 30, 0};
  return cases;
}

TEST(Rows, Case01_rows_without_keys_are_zero_and_lse_minus_infinity) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    for (const PerHead sinks : {PerHead::none, PerHead::per_head}) {
      for (Case what : cases_with_empty_rows(dtype)) {
        what.spec.sinks = sinks;
        ProblemData data = make(what);
        // Biases leave every third row empty.
        const bool boolean = what.spec.bias.kind == BiasKind::boolean;
        data.set(TensorId::bias, [&](const ElementIndex& e) {
          if (boolean) return e.token % 3 == 0 ? 0.0f : 1.0f;
          return e.token % 3 == 0 ? -INFINITY : 0.5f;
        });
        data.set(TensorId::sinks, [](const ElementIndex&) { return 0.75f; });
        expect_conforms(data);
        // That the reference has such rows: the check above is then exact for them.
        const auto rows = all_rows(data.problem(), data.tensors());
        const auto exact = attention(data.problem(), data.tensors(), rows);
        const double lse = sinks == PerHead::none ? -INFINITY : 0.75;
        std::int64_t empty = 0;
        for (const auto& row : exact) {
          if (row.lse == lse && row.o == std::vector<double>(row.o.size())) ++empty;
        }
        EXPECT_GT(empty, 0) << what.name;
      }
    }
  }
}

// Lengths in every mix of zero and not, packed and padded, on both sides apart.
TEST(Rows, Case04_zero_lengths_anywhere_in_a_batch) {
  for (const LengthKind kind : {LengthKind::cumulative, LengthKind::per_sequence}) {
    for (int mix = 0; mix < 64; ++mix) {
      Case what = fixed_case(19, 35);
      what.name = "zero lengths " + std::to_string(mix);
      what.spec.batch = 3;
      what.spec.qk_dim = 8;
      what.spec.mask.causal = mix % 2 == 0;
      what.spec.q_lengths.kind = what.spec.kv_lengths.kind = kind;
      std::int32_t q_end = 0;
      std::int32_t kv_end = 0;
      if (kind == LengthKind::cumulative) {
        what.q_lengths = {0};
        what.kv_lengths = {0};
      }
      for (int b = 0; b < 3; ++b) {
        const std::int32_t q = (mix >> b) % 2 == 0 ? 0 : 5 + 7 * b;
        const std::int32_t kv = (mix >> (3 + b)) % 2 == 0 ? 0 : 35 - 16 * b;
        q_end += q;
        kv_end += kv;
        const bool packed = kind == LengthKind::cumulative;
        what.q_lengths.push_back(packed ? q_end : q);
        what.kv_lengths.push_back(packed ? kv_end : kv);
      }
      if (kind == LengthKind::cumulative) {
        what.spec.q_lengths.total_tokens = q_end;
        what.spec.kv_lengths.total_tokens = kv_end;
      }
      expect_conforms(what);
    }
  }
}

TEST(Rows, Case04_empty_batches_and_bounds) {
  Case no_batch = fixed_case(8, 8);
  no_batch.spec.batch = 0;
  expect_conforms(no_batch);
  expect_conforms(fixed_case(0, 8));
  expect_conforms(fixed_case(0, 0));
  Case many = fixed_case(0, 8);
  many.spec.batch = 4;
  many.spec.heads = many.spec.kv_heads = 3;
  expect_conforms(many);
  Case packed = fixed_case(4, 4);
  packed.spec.batch = 0;
  packed.spec.q_lengths = packed.spec.kv_lengths = {LengthKind::cumulative, 4, 0};
  packed.q_lengths = packed.kv_lengths = {0};
  expect_conforms(packed);
}

TEST(Rows, lengths_beyond_the_bounds_are_clamped) {
  Case padded = fixed_case(20, 40);
  padded.spec.batch = 4;
  padded.spec.q_lengths.kind = padded.spec.kv_lengths.kind = LengthKind::per_sequence;
  padded.q_lengths = {-5, 21, 2147483647, 3};
  padded.kv_lengths = {7, -2147483647 - 1, 99, 40};
  expect_conforms(padded);
  Case packed = fixed_case(20, 40);
  packed.spec.batch = 3;
  packed.spec.q_lengths = {LengthKind::cumulative, 20, 50};
  packed.spec.kv_lengths = {LengthKind::cumulative, 40, 60};
  packed.q_lengths = {3, 9, 40, 2147483647};  // 31 queries cut to 20; the last ends at 50
  packed.kv_lengths = {-4, 50, 20, 60};       // 50 keys cut to 40; none; from 20 to the end
  expect_conforms(packed);
}

TEST(Rows, Case05_query_and_key_lengths_differ) {
  for (const auto& [q_len, kv_len] : std::initializer_list<std::pair<std::int64_t, std::int64_t>>{
           {1, 257}, {257, 1}, {64, 65}, {65, 64}, {127, 193}, {193, 127}, {3, 200}, {200, 3}}) {
    for (const Diagonal diagonal : {Diagonal::bottom_right, Diagonal::top_left}) {
      Case what = fixed_case(q_len, kv_len);
      what.spec.mask = {true, diagonal};
      expect_conforms(what);
    }
  }
}

TEST(Rows, Case06_windows_are_inclusive_at_both_ends) {
  for (const Diagonal diagonal : {Diagonal::bottom_right, Diagonal::top_left}) {
    for (const auto& [left, right] : std::initializer_list<std::pair<std::int64_t, std::int64_t>>{
             {0, 0}, {10, 0}, {0, 10}, {33, -1}, {-1, 33}, {64, 64}, {kFarthest, 0}}) {
      for (const bool causal : {false, true}) {
        Case what = fixed_case(130, 140);
        what.spec.mask = {causal, diagonal, left, right};
        expect_conforms(what);
      }
    }
  }
}

// Bit for bit: a window that reaches every key is no window.
TEST(Rows, Case06_a_window_of_all_keys_is_no_window) {
  for (const bool causal : {false, true}) {
    Case what = fixed_case(70, 90);
    what.spec.mask.causal = causal;
    ProblemData open = make(what);
    for (const std::int64_t window : {std::int64_t{159}, std::int64_t{160}, kFarthest}) {
      what.spec.mask.window_left = what.spec.mask.window_right = window;
      ProblemData wide = make(what);
      for (const auto& variant : variants()) {
        SCOPED_TRACE(variant->name());
        if (!run_one(*variant, open) || !run_one(*variant, wide)) continue;
        EXPECT_EQ(result_bits(open), result_bits(wide)) << window;
      }
    }
  }
}

}  // namespace
}  // namespace tilewright::conformance
