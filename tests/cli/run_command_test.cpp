// tests/cli/run_command_test.cpp: `tilewright run` from files to files, for every layout and flag.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "file_text.h"
#include "files/npy.h"
#include "files/safetensors.h"
#include "plain_attention.h"
#include "run_command.h"

namespace tilewright::test {
namespace {

using nlohmann::json;

std::vector<float> normal(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> distribution;
  std::vector<float> values(count);
  for (float& value : values) value = distribution(random);
  return values;
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string text = "(";
  for (const std::int64_t extent : shape) text += std::to_string(extent) + ",";
  return text + ")";
}

std::size_t count(const std::vector<std::int64_t>& shape) {
  std::size_t product = 1;
  for (const std::int64_t extent : shape) product *= static_cast<std::size_t>(extent);
  return product;
}

// A folder with q, k and v, a command on them, and what it wrote.
class RunCommand : public ::testing::Test {
 protected:
  void write(const std::vector<std::int64_t>& q_shape, const std::vector<std::int64_t>& k_shape,
             const std::vector<std::int64_t>& v_shape) {
    q_ = normal(count(q_shape), 1);
    k_ = normal(count(k_shape), 2);
    v_ = normal(count(v_shape), 3);
    folder_.write("q.npy", npy_f32(shape_text(q_shape), q_));
    folder_.write("k.npy", npy_f32(shape_text(k_shape), k_));
    folder_.write("v.npy", npy_f32(shape_text(v_shape), v_));
  }

  void run(std::vector<std::string> more, std::vector<std::string> inputs = {}) {
    if (inputs.empty()) {
      inputs = {"--q", folder_.path("q.npy"), "--k", folder_.path("k.npy"),
                "--v", folder_.path("v.npy")};
    }
    std::vector<std::string> words = {
        "run", "--json", "--out", folder_.path("o.npy"), "--lse", folder_.path("lse.npy")};
    words.insert(words.end(), inputs.begin(), inputs.end());
    words.insert(words.end(), more.begin(), more.end());
    const CommandResult result = run_command(words);
    ASSERT_EQ(result.exit_code, 0) << result.err;
    printed_ = json::parse(result.out);
    auto o = files::read_npy(folder_.path("o.npy"));
    ASSERT_TRUE(o.ok()) << o.status().message();
    o_ = *o;
    auto lse = files::read_npy(folder_.path("lse.npy"));
    ASSERT_TRUE(lse.ok()) << lse.status().message();
    lse_ = *lse;
  }

  // Row `query` of `head` lies at these elements of O and LSE.
  void expect_row(const PlainProblem& problem, std::int64_t head, std::int64_t query,
                  std::int64_t o_at, std::int64_t lse_at) {
    const PlainRow row = plain_row(problem, head, query);
    const auto* o = static_cast<const float*>(o_.data) + o_at;
    for (std::int64_t d = 0; d < problem.v_dim; ++d) {
      ASSERT_NEAR(o[d], row.o[static_cast<std::size_t>(d)], 2e-6)
          << "head " << head << " query " << query << " dim " << d;
    }
    const float lse = static_cast<const float*>(lse_.data)[lse_at];
    if (std::isinf(row.lse)) {
      ASSERT_EQ(lse, -std::numeric_limits<float>::infinity());
    } else {
      ASSERT_NEAR(lse, row.lse, 1e-5) << "head " << head << " query " << query;
    }
  }

  // One head: q [q_len, 16], k [kv_len, 16], v [kv_len, 8].
  PlainProblem one_head(std::int64_t q_len, std::int64_t kv_len) {
    write({q_len, 16}, {kv_len, 16}, {kv_len, 8});
    PlainProblem problem;
    problem.q_len = q_len;
    problem.kv_len = kv_len;
    problem.dim = 16;
    problem.v_dim = 8;
    problem.q = [this](auto, auto token, auto d) { return q_[token * 16 + d]; };
    problem.k = [this](auto, auto token, auto d) { return k_[token * 16 + d]; };
    problem.v = [this](auto, auto token, auto d) { return v_[token * 8 + d]; };
    return problem;
  }

  void expect_one_head(const PlainProblem& problem) {
    for (std::int64_t query = 0; query < problem.q_len; ++query) {
      ASSERT_NO_FATAL_FAILURE(expect_row(problem, 0, query, query * 8, query));
    }
  }

  ScratchFolder folder_;
  std::vector<float> q_, k_, v_;
  files::Array o_, lse_;
  json printed_;
};

TEST_F(RunCommand, TwoAxesAreOneHead) {
  const PlainProblem problem = one_head(37, 53);
  run({});
  EXPECT_EQ(o_.shape, (std::vector<std::int64_t>{37, 8}));
  EXPECT_EQ(lse_.shape, (std::vector<std::int64_t>{37}));
  expect_one_head(problem);
  EXPECT_EQ(printed_["input_bytes"], 4 * (37 * 16 + 53 * 16 + 53 * 8));
  EXPECT_EQ(printed_["flops"], 2.0 * 37 * 53 * (16 + 8));
  EXPECT_GT(printed_["seconds"], 0);
  EXPECT_GT(printed_["peak_resident_bytes"], 1e6);
}

TEST_F(RunCommand, GroupedHeadsInBothLayoutsAndRanks) {
  for (const bool bhsd : {false, true}) {
    for (const std::int64_t batch : {0, 2}) {  // 0: three axes
      SCOPED_TRACE(testing::Message() << "bhsd " << bhsd << " batch " << batch);
      const std::int64_t heads = 4, kv_heads = 2, q_len = 19, kv_len = 23, dim = 8, v_dim = 5;
      const auto shape = [&](std::int64_t h, std::int64_t s, std::int64_t d) {
        std::vector<std::int64_t> out = bhsd ? std::vector{h, s, d} : std::vector{s, h, d};
        if (batch > 0) out.insert(out.begin(), batch);
        return out;
      };
      const auto at = [=](std::int64_t b, std::int64_t h, std::int64_t s, std::int64_t hs,
                          std::int64_t ss, std::int64_t ds) {
        return b * hs * ss * ds + (bhsd ? (h * ss + s) : (s * hs + h)) * ds;
      };
      write(shape(heads, q_len, dim), shape(kv_heads, kv_len, dim), shape(kv_heads, kv_len, v_dim));
      run({"--layout", bhsd ? "bhsd" : "bshd"});
      EXPECT_EQ(o_.shape, shape(heads, q_len, v_dim));
      for (std::int64_t b = 0; b < std::max<std::int64_t>(1, batch); ++b) {
        PlainProblem problem;
        problem.heads = heads;
        problem.kv_heads = kv_heads;
        problem.kv_len = kv_len;
        problem.dim = dim;
        problem.v_dim = v_dim;
        problem.q = [&](auto h, auto s, auto d) { return q_[at(b, h, s, heads, q_len, dim) + d]; };
        problem.k = [&](auto h, auto s, auto d) {
          return k_[at(b, h, s, kv_heads, kv_len, dim) + d];
        };
        problem.v = [&](auto h, auto s, auto d) {
          return v_[at(b, h, s, kv_heads, kv_len, v_dim) + d];
        };
        for (std::int64_t h = 0; h < heads; ++h) {
          for (std::int64_t s = 0; s < q_len; ++s) {
            ASSERT_NO_FATAL_FAILURE(expect_row(problem, h, s, at(b, h, s, heads, q_len, v_dim),
                                               (b * heads + h) * q_len + s));
          }
        }
      }
    }
  }
}

TEST_F(RunCommand, Case05_CausalBothWaysWhenLengthsDiffer) {
  for (const auto& [q_len, kv_len] : {std::pair{20, 33}, {33, 20}}) {
    for (const char* where : {"bottom-right", "top-left"}) {
      SCOPED_TRACE(testing::Message() << where << " " << q_len << " " << kv_len);
      PlainProblem problem = one_head(q_len, kv_len);
      const std::int64_t shift = where[0] == 'b' ? kv_len - q_len : 0;
      problem.visible = [shift](auto query, auto key) { return key <= query + shift; };
      run({"--causal", where});
      expect_one_head(problem);
    }
  }
}

TEST_F(RunCommand, Case06_WindowsAreInclusive) {
  for (const auto& [text, left, right] :
       {std::tuple{"3,2", 3, 2}, {"0,0", 0, 0}, {"-1,2", 1000, 2}, {"3,-1", 3, 1000}}) {
    PlainProblem problem = one_head(31, 31);
    problem.visible = [left = left, right = right](auto query, auto key) {
      return key >= query - left && key <= query + right;
    };
    run({"--window", text});
    expect_one_head(problem);
  }
}

TEST_F(RunCommand, ScaleSoftcapAlibiSinkAndBias) {
  PlainProblem problem = one_head(29, 31);
  problem.scale = -0.5;
  run({"--scale", "-0.5"});
  expect_one_head(problem);

  problem.scale = 0.9;
  problem.softcap = 1.5;
  run({"--scale", "0.9", "--softcap", "1.5"});
  expect_one_head(problem);

  problem = one_head(29, 31);
  folder_.write("slopes.npy",
                npy_text(npy_dict("<f8", "(1,)"), bytes_of(std::vector<double>{0.25})));
  folder_.write("sinks.npy", npy_f32("(1, 1)", {0.75f}));
  problem.sink = [](auto) { return 0.75; };
  problem.bias = [](auto, auto query, auto key) {
    return -0.25 * std::abs(static_cast<double>(query + 31 - 29 - key));
  };
  run({"--alibi", folder_.path("slopes.npy"), "--sink", folder_.path("sinks.npy")});
  expect_one_head(problem);
  EXPECT_NE(printed_["notes"].dump().find("rounded from f64"), std::string::npos);

  problem = one_head(29, 31);
  const std::vector<float> bias = normal(31, 4);
  folder_.write("bias.npy", npy_f32("(1, 31)", bias));
  problem.bias = [&](auto, auto, auto key) { return bias[key]; };
  run({"--bias", folder_.path("bias.npy")});
  expect_one_head(problem);

  problem = one_head(29, 31);
  std::string sees(29 * 31, '\0');
  for (std::size_t i = 0; i < sees.size(); ++i) sees[i] = i % 3 == 0 || i % 31 == 0 ? 1 : 0;
  folder_.write("bias.npy", npy_text(npy_dict("|b1", "(29, 31)"), sees));
  problem.visible = [&](auto query, auto key) { return sees[query * 31 + key] != 0; };
  run({"--bias", folder_.path("bias.npy")});
  expect_one_head(problem);
}

TEST_F(RunCommand, Case01_RowsWithoutKeysAreZeroAndMinusInfinity) {
  PlainProblem problem = one_head(12, 5);
  problem.visible = [](auto query, auto key) { return key <= query + 5 - 12; };
  run({"--causal", "bottom-right"});
  expect_one_head(problem);
  EXPECT_EQ(static_cast<const float*>(lse_.data)[0], -std::numeric_limits<float>::infinity());
  // No keys at all.
  problem = one_head(3, 0);
  run({});
  expect_one_head(problem);
}

TEST_F(RunCommand, Case04_PackedSequencesOfAnyLengthZeroIncluded) {
  PlainProblem problem = one_head(40, 44);
  const std::vector<std::int64_t> q_offsets = {0, 0, 7, 7, 40};
  const std::vector<std::int32_t> kv_offsets = {0, 3, 20, 20, 44};
  folder_.write("qo.npy", npy_text(npy_dict("<i8", "(5,)"), bytes_of(q_offsets)));
  folder_.write("ko.npy", npy_text(npy_dict("<i4", "(5,)"), bytes_of(kv_offsets)));
  run({"--packed", "--q-lengths", folder_.path("qo.npy"), "--kv-lengths", folder_.path("ko.npy")});
  for (std::size_t b = 0; b < 4; ++b) {
    PlainProblem sequence = problem;
    sequence.kv_len = kv_offsets[b + 1] - kv_offsets[b];
    sequence.q = [&](auto h, auto t, auto d) { return problem.q(h, t + q_offsets[b], d); };
    sequence.k = [&](auto h, auto t, auto d) { return problem.k(h, t + kv_offsets[b], d); };
    sequence.v = [&](auto h, auto t, auto d) { return problem.v(h, t + kv_offsets[b], d); };
    for (std::int64_t query = 0; query < q_offsets[b + 1] - q_offsets[b]; ++query) {
      const std::int64_t row = q_offsets[b] + query;
      ASSERT_NO_FATAL_FAILURE(expect_row(sequence, 0, query, row * 8, row));
    }
  }
  // Work is counted for the sequences as they are.
  EXPECT_EQ(printed_["flops"], 2.0 * (7 * 17 + 33 * 24) * (16 + 8));
}

TEST_F(RunCommand, Case02_PaddedSequencesLeaveDefinedRowsPastTheirEnd) {
  write({2, 9, 1, 4}, {2, 11, 1, 4}, {2, 11, 1, 4});
  // What lies past a sequence's end must not matter, NaN included.
  for (std::size_t i = 0; i < 4; ++i) {
    k_[(11 + 10) * 4 + i] = v_[(11 + 10) * 4 + i] = std::numeric_limits<float>::quiet_NaN();
  }
  folder_.write("k.npy", npy_f32("(2, 11, 1, 4)", k_));
  folder_.write("v.npy", npy_f32("(2, 11, 1, 4)", v_));
  folder_.write("ql.npy",
                npy_text(npy_dict("<i4", "(2,)"), bytes_of(std::vector<std::int32_t>{9, 6})));
  folder_.write("kl.npy",
                npy_text(npy_dict("<i4", "(2,)"), bytes_of(std::vector<std::int32_t>{0, 10})));
  run({"--q-lengths", folder_.path("ql.npy"), "--kv-lengths", folder_.path("kl.npy")});
  const std::int64_t q_tokens[] = {9, 6};
  const std::int64_t kv_tokens[] = {0, 10};
  for (std::int64_t b = 0; b < 2; ++b) {
    PlainProblem problem;
    problem.dim = problem.v_dim = 4;
    problem.kv_len = kv_tokens[b];
    problem.q = [&](auto, auto s, auto d) { return q_[(b * 9 + s) * 4 + d]; };
    problem.k = [&](auto, auto s, auto d) { return k_[(b * 11 + s) * 4 + d]; };
    problem.v = [&](auto, auto s, auto d) { return v_[(b * 11 + s) * 4 + d]; };
    for (std::int64_t s = 0; s < 9; ++s) {
      if (s >= q_tokens[b]) problem.kv_len = 0;  // O = 0, LSE = -inf
      ASSERT_NO_FATAL_FAILURE(expect_row(problem, 0, s, (b * 9 + s) * 4, b * 9 + s));
    }
  }
}

TEST_F(RunCommand, FortranOrderAndBigEndianInputsGiveTheSameBits) {
  one_head(21, 34);
  run({});
  const std::string expected = folder_.read("o.npy");
  std::vector<float> columns(21 * 16);
  for (std::size_t row = 0; row < 21; ++row) {
    for (std::size_t d = 0; d < 16; ++d) columns[d * 21 + row] = q_[row * 16 + d];
  }
  folder_.write("q.npy",
                npy_text(npy_dict(">f4", "(21, 16)", true), swapped(bytes_of(columns), 4)));
  run({});
  EXPECT_EQ(folder_.read("o.npy"), expected);
}

TEST_F(RunCommand, Bf16ThroughSafetensors) {
  // 1, 2, 0.5 and -1 are exact in bf16.
  std::vector<std::uint16_t> values;
  for (int i = 0; i < 3 * 8 * 4; ++i) {
    values.push_back(
        std::vector<std::uint16_t>{0x3f80, 0x4000, 0x3f00, 0xbf80}[(i * 7 + i / 5) % 4]);
  }
  const std::string path = folder_.write(
      "in.safetensors",
      safetensors_text(R"({"q":{"dtype":"BF16","shape":[8,4],"data_offsets":[0,64]},)"
                       R"("k":{"dtype":"BF16","shape":[8,4],"data_offsets":[64,128]},)"
                       R"("v":{"dtype":"BF16","shape":[8,4],"data_offsets":[128,192]}})",
                       bytes_of(values)));
  const CommandResult result =
      run_command({"run", "--input", path, "--out", folder_.path("o.safetensors")});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto file = files::SafetensorsFile::open(folder_.path("o.safetensors"));
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(file->names(), (std::vector<std::string>{"lse", "o"}));
  EXPECT_EQ(file->tensor("o")->dtype, DType::bf16);
  EXPECT_EQ(file->tensor("lse")->dtype, DType::f32);

  // The same through --out-dtype f32, against the plain loops.
  ASSERT_NO_FATAL_FAILURE(run({"--out-dtype", "f32"}, {"--input", path}));
  PlainProblem problem;
  problem.kv_len = 8;
  problem.dim = problem.v_dim = 4;
  const auto value = [&](std::int64_t at) {
    return std::vector<double>{1, 2, 0.5, -1}[(at * 7 + at / 5) % 4];
  };
  problem.q = [&](auto, auto s, auto d) { return value(s * 4 + d); };
  problem.k = [&](auto, auto s, auto d) { return value(32 + s * 4 + d); };
  problem.v = [&](auto, auto s, auto d) { return value(64 + s * 4 + d); };
  for (std::int64_t s = 0; s < 8; ++s) {
    const PlainRow row = plain_row(problem, 0, s);
    for (std::int64_t d = 0; d < 4; ++d) {
      // P is rounded to bf16 before it meets V.
      EXPECT_NEAR(static_cast<const float*>(o_.data)[s * 4 + d], row.o[static_cast<std::size_t>(d)],
                  0.02);
    }
  }
}

TEST_F(RunCommand, TilesThreadsAndSchedulesAreHonoured) {
  const PlainProblem problem = one_head(70, 90);
  for (const std::vector<std::string>& flags : std::vector<std::vector<std::string>>{
           {"--tile", "16x32", "--threads", "1"}, {"--threads", "5"}, {"--schedule", "standard"}}) {
    run(flags);
    expect_one_head(problem);
  }
  run({"--tile", "16x32"});
  EXPECT_EQ(printed_["tile"], "16x32");
  run({"--schedule", "standard"});
  EXPECT_EQ(printed_["schedule"], "standard");
}

TEST_F(RunCommand, AnInputMayBeReplacedByTheOutput) {
  const PlainProblem problem = one_head(24, 24);
  const CommandResult result =
      run_command({"run", "--q", folder_.path("q.npy"), "--k", folder_.path("k.npy"), "--v",
                   folder_.path("v.npy"), "--out", folder_.path("v.npy")});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto o = files::read_npy(folder_.path("v.npy"));
  ASSERT_TRUE(o.ok());
  EXPECT_NEAR(static_cast<const float*>(o->data)[3], plain_row(problem, 0, 0).o[3], 2e-6);
}

}  // namespace
}  // namespace tilewright::test
