// tests/conformance/memory_test.cpp: how operands lie in memory: bytes outside, strides, views, and
// more elements than 32 bits count.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cmath>

#include "conformance/check.h"
#include "reference/element.h"
#include "reference/random.h"
#include "reference/random_problem.h"
#include "reference/tolerance.h"
#include "support/scale.h"

namespace tilewright::conformance {
namespace {

// NaN, infinity, the largest and ordinary numbers: none of them may reach a result.
TEST(Memory, Case02_bytes_outside_the_sequences_never_matter) {
  reference::RandomLimits limits;
  limits.max_flops = 5e6;
  std::uint64_t seed = test::first_seed(2000);
  for (std::int64_t found = 0; found < test::scaled(25); ++seed) {
    const Case what = reference::random_case(seed, limits);
    if (what.q_lengths.empty() && what.kv_lengths.empty()) continue;
    ++found;
    ProblemData data = make(what);
    for (const auto& variant : variants()) {
      SCOPED_TRACE(variant->name() + ": " + to_text(what));
      data.set_outside(reference::kPoison);
      if (!run_one(*variant, data)) continue;
      const auto bits = result_bits(data);
      for (const int pattern : {0xffff, 0x7f80, 0x7c00, 0x0000, 0x4040}) {
        data.set_outside(static_cast<std::uint16_t>(pattern));
        ASSERT_TRUE(run_one(*variant, data));
        EXPECT_EQ(bits, result_bits(data)) << "outside bytes " << std::hex << pattern;
      }
    }
  }
}

// NaN or infinity in K, at a key that some rows see and others do not.
TEST(Memory, Case02_a_nan_key_reaches_only_rows_that_see_it) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    for (const float bad : {std::nanf(""), INFINITY}) {
      for (const std::int64_t key : {0, 31, 64, 99}) {
        Case what = fixed_case(100, 100, dtype);
        what.spec.mask = {true, Diagonal::bottom_right, 40, -1};
        ProblemData data = make(what);
        for (const auto& variant : variants()) {
          SCOPED_TRACE(variant->name() + ": " + to_text(what));
          data = make(what);
          if (!run_one(*variant, data)) continue;
          const auto clean = expected_rows(data.problem(), data.tensors(),
                                           all_rows(data.problem(), data.tensors()));
          const AttentionTensors t = data.tensors();
          reference::store(const_cast<void*>(t.k), dtype, key * 64 + 3, bad);
          ASSERT_TRUE(run_one(*variant, data));
          for (const auto& row : clean) {
            const std::int64_t query = row.index.query;
            const bool sees = query >= key && query - key <= 40;
            const float o = reference::load(t.o, dtype, query * 64);
            if (!sees) {
              EXPECT_TRUE(compare(data.problem(), t, {row}).ok()) << "row " << query;
            } else if (std::isnan(bad)) {
              EXPECT_TRUE(std::isnan(o) && std::isnan(t.lse[query])) << "row " << query;
            }
          }
        }
      }
    }
  }
}

TEST(Memory, a_nan_query_reaches_only_its_own_row) {
  for (const std::int64_t dim : {64, 128, 192, 256}) {
    Case what = fixed_case(70, 200);
    what.spec.qk_dim = dim;
    ProblemData data = make(what);
    data.set(TensorId::q, [](const ElementIndex& e) {
      // The first and the second of the rows that a thread of the GPU's kernels has.
      const bool nan = e.token == 33 || e.token == 44;
      return nan ? NAN : static_cast<float>(e.dim % 5) * 0.25f - 0.5f;
    });
    expect_conforms(data);
  }
}

// Memory that costs nothing until it is touched.
class SparseBuffer {
 public:
  explicit SparseBuffer(std::size_t bytes) : bytes_(bytes) {
    data_ = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  }
  ~SparseBuffer() { munmap(data_, bytes_); }
  SparseBuffer(const SparseBuffer&) = delete;
  bool ok() const { return data_ != MAP_FAILED; }
  void* data() { return data_; }
  HostBuffer buffer(bool output) { return {data_, bytes_, output}; }

 private:
  std::size_t bytes_;
  void* data_;
};

// q, k, v and o each spread over more elements than 32 bits count, along the axis named.
void expect_far_elements_conform(const char* axis, const Strides& strides, std::int64_t batch,
                                 std::int64_t heads, std::int64_t tokens, LengthKind kind) {
  AttentionSpec spec;
  spec.batch = batch;
  spec.heads = spec.kv_heads = heads;
  spec.qk_dim = 4;
  spec.dtype = DType::bf16;
  spec.q_lengths = spec.kv_lengths = {kind, tokens};
  std::vector<std::int32_t> offsets;
  if (kind == LengthKind::cumulative) {
    spec.q_lengths.total_tokens = spec.kv_lengths.total_tokens = batch * tokens;
    for (std::int64_t b = 0; b <= batch; ++b) {
      offsets.push_back(static_cast<std::int32_t>(b * tokens));
    }
  }
  spec.q.strides = spec.k.strides = spec.v.strides = spec.o.strides = strides;
  const auto problem = AttentionProblem::create(spec);
  ASSERT_TRUE(problem.ok()) << problem.status().message();
  const std::int64_t last_token = kind == LengthKind::cumulative ? batch * tokens - 1 : tokens - 1;
  const std::int64_t last = (kind == LengthKind::cumulative ? 0 : batch - 1) * strides.batch +
                            last_token * strides.token + (heads - 1) * strides.head +
                            3 * strides.dim;
  ASSERT_GT(last, std::int64_t{1} << 32) << axis;
  const std::size_t bytes = static_cast<std::size_t>(last + 1) * 2;
  SparseBuffer q(bytes), k(bytes), v(bytes), o(bytes);
  ASSERT_TRUE(q.ok() && k.ok() && v.ok() && o.ok());
  std::vector<float> lse(static_cast<std::size_t>(problem->lse_rows()), NAN);
  Call call{&*problem, {}, {}};
  call.tensors = {q.data(), k.data(), v.data(), o.data(), lse.data(), nullptr, nullptr};
  call.buffers = {q.buffer(false),
                  k.buffer(false),
                  v.buffer(false),
                  o.buffer(true),
                  {lse.data(), lse.size() * 4, true}};
  if (!offsets.empty()) {
    call.tensors.q_lengths = call.tensors.kv_lengths = offsets.data();
    call.buffers.push_back({offsets.data(), offsets.size() * 4, false});
  }
  reference::Random random(7);
  const auto rows = all_rows(*problem, call.tensors);
  const auto each = [&](void* data, const auto& value) {
    for (const auto& row : rows) {
      const auto range = token_range(spec.q_lengths, call.tensors.q_lengths, row.batch);
      const std::int64_t first = range.offset(strides, row.query, row.head);
      for (std::int64_t d = 0; d < 4; ++d) {
        reference::store(data, DType::bf16, first + d * strides.dim, value());
      }
    }
  };
  for (SparseBuffer* input : {&q, &k, &v}) {
    each(input->data(), [&] { return static_cast<float>(random.normal()); });
  }
  const auto expected = expected_rows(*problem, call.tensors, rows);
  for (const auto& variant : variants()) {
    SCOPED_TRACE(variant->name() + " far along " + axis);
    each(o.data(), [] { return NAN; });
    std::fill(lse.begin(), lse.end(), NAN);
    const auto plan = variant->run(call, {});
    if (variant->refuses(problem->spec())) {
      EXPECT_EQ(plan.status().code(), StatusCode::unsupported);
      continue;
    }
    ASSERT_TRUE(plan.ok()) << plan.status().message();
    const auto result = compare(*problem, call.tensors, expected);
    EXPECT_TRUE(result.ok()) << to_text(result, *plan, 7);
  }
}

constexpr std::int64_t kFar = (std::int64_t{1} << 31) + 12345;

TEST(Memory, Case07_token_offsets_beyond_32_bits) {
  expect_far_elements_conform("tokens", {0, kFar, 64, 1}, 1, 2, 4, LengthKind::fixed);
  // A stride that 32 bits hold, whose multiples they do not.
  expect_far_elements_conform("tokens", {0, (1 << 27) + 64, 64, 1}, 1, 1, 40, LengthKind::fixed);
}

TEST(Memory, Case07_packed_token_offsets_beyond_32_bits) {
  expect_far_elements_conform("packed tokens", {0, kFar, 64, 1}, 2, 2, 2, LengthKind::cumulative);
}

TEST(Memory, Case07_batch_head_and_dim_offsets_beyond_32_bits) {
  expect_far_elements_conform("batch", {kFar, 128, 64, 1}, 4, 2, 17, LengthKind::fixed);
  expect_far_elements_conform("heads", {0, 64, kFar, 1}, 1, 4, 17, LengthKind::fixed);
  expect_far_elements_conform("dims", {0, 64, 4, kFar}, 1, 2, 5, LengthKind::fixed);
}

TEST(Memory, Case08_a_million_heads) {
  for (const std::int64_t kv_len : {1, 2}) {
    const std::int64_t batch = test::scaled(kv_len == 1 ? 1024 : 128);
    Case what = fixed_case(1, kv_len);
    what.name = "a million heads";
    what.spec.batch = batch;
    what.spec.heads = what.spec.kv_heads = 1024;
    what.spec.qk_dim = 2;
    ProblemData data = make(what);
    const AttentionTensors t = data.tensors();
    const auto number = [&](const void* data_of, std::int64_t i) {
      return reference::load(data_of, what.spec.dtype, i);
    };
    for (const auto& variant : variants()) {
      SCOPED_TRACE(variant->name());
      if (!run_one(*variant, data)) continue;
      const auto rows = sample_rows(data.problem(), t, 2000, 1);
      const auto result = compare(data.problem(), t, rows);
      EXPECT_TRUE(result.ok()) << to_text(result, variant->name(), 1);
      // One key: its value comes back unchanged. Two: what comes back lies between them.
      std::int64_t wrong = 0;
      for (std::int64_t head = 0; head < batch * 1024; ++head) {
        for (std::int64_t d = 0; d < 2; ++d) {
          const std::int64_t b = head / 1024;
          const float first = number(t.v, (b * kv_len * 1024 + head % 1024) * 2 + d);
          const float last = number(t.v, ((b * kv_len + kv_len - 1) * 1024 + head % 1024) * 2 + d);
          const float got = number(t.o, head * 2 + d);
          const float slack = kv_len == 1 ? 0 : 1e-6f;
          if (!(got >= std::min(first, last) - slack && got <= std::max(first, last) + slack)) {
            ++wrong;
          }
        }
      }
      EXPECT_EQ(wrong, 0);
    }
  }
}

// [batch 2, tokens 37, heads 4, dim 24] in every order of axes, sliced, expanded and reversed.
struct View {
  const char* name;
  Strides strides;
  bool for_output;
};

std::vector<View> views() {
  constexpr std::int64_t kTokens = 37, kHeads = 4, kDim = 24;
  return {
      {"bshd", Strides::bshd(kTokens, kHeads, kDim), true},
      {"bhsd", Strides::bhsd(kTokens, kHeads, kDim), true},
      {"bhds: dim before tokens", {kHeads * kDim * kTokens, 1, kDim * kTokens, kTokens}, true},
      {"dbsh: dim outermost", {kTokens * kHeads, kHeads, 1, 2 * kTokens * kHeads}, true},
      {"sbhd: tokens outermost", {kHeads * kDim, 2 * kHeads * kDim, kDim, 1}, true},
      {"one of q, k and v in one buffer",
       {kTokens * 3 * kHeads * kDim, 3 * kHeads * kDim, kDim, 1},
       true},
      {"every second component",
       {kTokens * kHeads * kDim * 2, kHeads * kDim * 2, kDim * 2, 2},
       true},
      {"every third token", {kTokens * kHeads * kDim * 3, kHeads * kDim * 3, kDim, 1}, true},
      {"rows of an odd pitch", {kTokens * kHeads * 25, kHeads * 25, 25, 1}, true},
      {"tokens reversed", {kTokens * kHeads * kDim, -kHeads * kDim, kDim, 1}, true},
      {"components reversed", {kTokens * kHeads * kDim, kHeads * kDim, kDim, -1}, true},
      {"all reversed", {-kTokens * kHeads * kDim, -kHeads * kDim, -kDim, -1}, true},
      {"batch expanded", {0, kHeads * kDim, kDim, 1}, false},
      {"heads expanded", {kTokens * kDim, kDim, 0, 1}, false},
      {"tokens expanded", {kHeads * kDim, 0, kDim, 1}, false},
      {"components expanded", {kTokens * kHeads, kHeads, 1, 0}, false},
      {"all expanded", {0, 0, 0, 0}, false},
  };
}

TEST(Memory, Case09_views_are_honoured) {
  for (const View& view : views()) {
    for (const DType dtype : {DType::f32, DType::bf16}) {
      for (int operand = 0; operand < 5; ++operand) {
        if (operand >= 3 && !view.for_output) continue;
        Case what = fixed_case(37, 37, dtype);
        what.name = view.name;
        what.spec.batch = 2;
        what.spec.heads = what.spec.kv_heads = 4;
        what.spec.qk_dim = 24;
        what.spec.mask.causal = true;
        AttentionSpec& spec = what.spec;
        Operand* operands[] = {&spec.q, &spec.k, &spec.v, &spec.o};
        if (operand < 4) operands[operand]->strides = view.strides;
        if (operand == 4) {
          for (Operand* each : operands) each->strides = view.strides;
        }
        expect_conforms(what);
      }
    }
  }
}

TEST(Memory, Case09_an_output_that_overlaps_itself_is_refused_by_name) {
  Case what = fixed_case(37, 37);
  what.spec.o.strides = Strides{0, 0, 24, 1};
  const auto problem = AttentionProblem::create(what.spec);
  ASSERT_FALSE(problem.ok());
  EXPECT_NE(problem.status().message().find("o.strides.token is 0"), std::string::npos)
      << problem.status().message();
}

}  // namespace
}  // namespace tilewright::conformance
