// tests/cli/safetensors_test.cpp: .safetensors files are read right, or refused by name.
#include "files/safetensors.h"

#include <gtest/gtest.h>

#include <limits>

#include "file_text.h"

namespace tilewright::files {
namespace {

using test::as_file;
using test::bytes_of;
using test::safetensors_text;

Result<SafetensorsFile> open(std::string_view text) {
  return SafetensorsFile::open("'x.safetensors'", as_file(text));
}

void expect_refused(std::string_view text, const std::vector<std::string>& words) {
  const Result<SafetensorsFile> file = open(text);
  ASSERT_FALSE(file.ok()) << "accepted; wanted: " << (words.empty() ? "" : words[0]);
  EXPECT_EQ(file.status().code(), StatusCode::invalid_argument);
  for (const std::string& word : words) {
    EXPECT_NE(file.status().message().find(word), std::string::npos)
        << "no \"" << word << "\" in: " << file.status().message();
  }
  EXPECT_EQ(file.status().message().rfind("'x.safetensors': ", 0), 0u) << file.status().message();
  EXPECT_NE(file.status().message().find("; accepted: "), std::string::npos)
      << file.status().message();
}

// One tensor "q" whose fields are given, over so many bytes of data.
std::string one(const std::string& fields, std::size_t data_bytes) {
  return safetensors_text("{\"q\":{" + fields + "}}", std::string(data_bytes, '\1'));
}

const std::string kGood = R"({"q":{"dtype":"BF16","shape":[2,3],"data_offsets":[0,12]},)"
                          R"("k":{"dtype":"F32","shape":[2],"data_offsets":[12,20]},)"
                          R"("other":{"dtype":"F8_E4M3","shape":[3],"data_offsets":[20,23]},)"
                          R"("__metadata__":{"format":"pt","note":"x"}})";

TEST(Safetensors, TensorsAreReadInPlace) {
  std::string data = bytes_of(std::vector<std::uint16_t>{1, 2, 3, 4, 5, 6});
  data += bytes_of(std::vector<float>{1.5f, 2.5f}) + "abc";
  std::string json = kGood;
  json.append(8 - json.size() % 8, ' ');
  const Result<SafetensorsFile> file = open(safetensors_text(json, data));
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(file->names(), (std::vector<std::string>{"k", "other", "q"}));
  const Result<Array> q = file->tensor("q");
  ASSERT_TRUE(q.ok()) << q.status().message();
  EXPECT_EQ(q->dtype, DType::bf16);
  EXPECT_EQ(q->shape, (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(static_cast<const std::uint16_t*>(q->data)[5], 6);
  const Result<Array> k = file->tensor("k");
  ASSERT_TRUE(k.ok());
  EXPECT_EQ(static_cast<const float*>(k->data)[1], 2.5f);
}

TEST(Safetensors, ATensorThatIsNotReadIsRefusedOnlyWhenAskedFor) {
  const Result<SafetensorsFile> file = open(safetensors_text(kGood, std::string(23, '\1')));
  ASSERT_TRUE(file.ok()) << file.status().message();
  const Result<Array> other = file->tensor("other");
  ASSERT_FALSE(other.ok());
  EXPECT_NE(other.status().message().find("'F8_E4M3'"), std::string::npos);
  const Result<Array> absent = file->tensor("v");
  ASSERT_FALSE(absent.ok());
  EXPECT_NE(absent.status().message().find("'v' is absent"), std::string::npos);
  EXPECT_NE(absent.status().message().find("'k', 'other', 'q'"), std::string::npos);
}

TEST(Safetensors, DataAtAnOddAddressIsCopiedToAnEvenOne) {
  for (std::size_t pad = 0; pad < 8; ++pad) {
    const Result<SafetensorsFile> file =
        open(safetensors_text(kGood + std::string(pad, ' '), std::string(23, '\1')));
    ASSERT_TRUE(file.ok());
    const Result<Array> k = file->tensor("k");
    ASSERT_TRUE(k.ok());
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(k->data) % 4, 0u);
    EXPECT_EQ(static_cast<const std::uint32_t*>(k->data)[1], 0x01010101u);
  }
}

TEST(Safetensors, EveryTruncationIsRefused) {
  const std::string whole = safetensors_text(kGood, std::string(23, '\1'));
  ASSERT_TRUE(open(whole).ok());
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(open(std::string_view(whole).substr(0, size)).ok()) << size << " bytes";
  }
  expect_refused(whole + "x", {"data is 24 bytes", "cover 23"});
}

TEST(Safetensors, LyingLengthsAreRefused) {
  expect_refused("", {"file size is 0 bytes"});
  expect_refused("1234567", {"file size is 7 bytes"});
  expect_refused(std::string(8, '\xff') + "{}", {"header length is 18446744073709551615"});
  expect_refused(std::string(8, '\0') + "{}", {"header is ''"});
  expect_refused(test::little_endian(100'000'001, 8) + "{}", {"header length is 100000001"});
  expect_refused(safetensors_text(" {}", ""), {"header is ' {}'"});
}

TEST(Safetensors, LyingOffsetsAreRefused) {
  const std::string head = R"("dtype":"F32","shape":[2],"data_offsets":)";
  expect_refused(one(head + "[0,16]", 8), {"'q'.data_offsets is [0, 16]", "8"});
  expect_refused(one(head + "[8,0]", 8), {"'q'.data_offsets is [8, 0]"});
  expect_refused(one(head + "[0,7]", 8), {"'q'.data_offsets is [0, 7]", "(2,)"});
  expect_refused(one(head + "[4,8]", 8), {"'q'.data_offsets is [4, 8]"});
  expect_refused(one(head + "[0,18446744073709551615]", 8),
                 {"'q'.data_offsets", "18446744073709551615"});
  expect_refused(one(head + "[-1,8]", 8), {"'q'.data_offsets is -1"});
  expect_refused(one(head + "[0]", 8), {"a list of 1"});
  expect_refused(one(head + "[0,4,8]", 8), {"a list of 3"});
  expect_refused(one(head + "[0,8.0]", 8), {"'q'.data_offsets is '8.0'"});
  expect_refused(one(head + "[[0],8]", 8), {"'q'.data_offsets is a list"});
  expect_refused(one(head + "\"0,8\"", 8), {"'q'.data_offsets is '0,8'"});
}

TEST(Safetensors, OverlapsAndGapsAreRefused) {
  const auto two = [](const char* first, const char* second, std::size_t bytes) {
    return safetensors_text(std::string(R"({"a":{"dtype":"I8","shape":[4],"data_offsets":)") +
                                first + R"(},"b":{"dtype":"I8","shape":[4],"data_offsets":)" +
                                second + "}}",
                            std::string(bytes, '\1'));
  };
  EXPECT_TRUE(open(two("[0,4]", "[4,8]", 8)).ok());
  EXPECT_TRUE(open(two("[4,8]", "[0,4]", 8)).ok());
  expect_refused(two("[0,4]", "[2,6]", 6), {"'b'.data_offsets is [2, 6]", "begin of 4"});
  expect_refused(two("[0,4]", "[0,4]", 4), {"begin of 4"});
  expect_refused(two("[0,4]", "[5,9]", 9), {"'b'.data_offsets is [5, 9]", "begin of 4"});
  expect_refused(two("[1,5]", "[5,9]", 9), {"'a'.data_offsets is [1, 5]", "begin of 0"});
}

TEST(Safetensors, ShapesWhoseProductOverflowsAreRefused) {
  expect_refused(
      one(R"("dtype":"F32","shape":[4611686018427387904,4611686018427387904],"data_offsets":[0,0])",
          0),
      {"'q'.shape is (4611686018427387904, 4611686018427387904)"});
  expect_refused(one(R"("dtype":"F32","shape":[6148914691236517206,4],"data_offsets":[0,8])", 8),
                 {"shape"});
  expect_refused(one(R"("dtype":"F32","shape":[1e3],"data_offsets":[0,8])", 8),
                 {"'q'.shape is '1e3'"});
  expect_refused(one(R"("dtype":"F32","shape":[NaN],"data_offsets":[0,8])", 8),
                 {"header is no JSON"});
  expect_refused(one(R"("dtype":"F32","shape":[null],"data_offsets":[0,8])", 8),
                 {"'q'.shape is null"});
  std::string many = "[1";
  for (int i = 0; i < 40; ++i) many += ",1";
  expect_refused(one("\"dtype\":\"F32\",\"shape\":" + many + "],\"data_offsets\":[0,4]", 4),
                 {"32"});
  EXPECT_TRUE(open(one(R"("dtype":"F32","shape":[],"data_offsets":[0,4])", 4)).ok());
  EXPECT_TRUE(open(one(R"("dtype":"F32","shape":[0,9],"data_offsets":[0,0])", 0)).ok());
}

TEST(Safetensors, DuplicateKeysAreRefused) {
  const std::string entry = R"({"dtype":"I8","shape":[1],"data_offsets":[0,1]})";
  expect_refused(safetensors_text("{\"q\":" + entry + ",\"q\":" + entry + "}", "x"),
                 {"'q' a second time"});
  expect_refused(one(R"("dtype":"I8","dtype":"I8","shape":[1],"data_offsets":[0,1])", 1),
                 {"'q' field is 'dtype' a second time"});
  expect_refused(safetensors_text(R"({"__metadata__":{"a":"1","a":"2"}})", ""),
                 {"'a' a second time"});
  expect_refused(safetensors_text(R"({"__metadata__":{},"__metadata__":{}})", ""),
                 {"'__metadata__' a second time"});
}

TEST(Safetensors, OtherJsonIsRefused) {
  expect_refused(one(R"("dtype":"I8","shape":[1])", 1), {"'q'", "data_offsets"});
  expect_refused(one(R"("dtype":"I8","shape":[1],"data_offsets":[0,1],"x":1)", 1), {"'x'"});
  expect_refused(one(R"("dtype":8,"shape":[1],"data_offsets":[0,1])", 1), {"'q'.dtype is 8"});
  expect_refused(safetensors_text(R"({"q":[1,2]})", ""), {"'q' is a list"});
  expect_refused(safetensors_text(R"({"q":null})", ""), {"'q' is null"});
  expect_refused(safetensors_text(R"({"__metadata__":{"a":1}})", ""), {"__metadata__.'a' is 1"});
  expect_refused(safetensors_text(R"({"__metadata__":{"a":{"b":"c"}}})", ""), {"__metadata__"});
  expect_refused(safetensors_text("{", ""), {"header is no JSON"});
  expect_refused(safetensors_text("{} {}", ""), {"header is no JSON"});
  expect_refused(safetensors_text("{\"\xff\":1}", ""), {"header is no JSON"});
  expect_refused(safetensors_text("{\"q\":" + std::string(100'000, '['), ""), {"'q' is a list"});
  EXPECT_TRUE(open(safetensors_text("{}", "")).ok());
}

TEST(Safetensors, WhatIsWrittenIsReadBack) {
  const test::ScratchFolder folder;
  const std::vector<std::uint16_t> o = {1, 2, 3, 4};
  const std::vector<float> lse = {0.5f, -std::numeric_limits<float>::infinity()};
  const std::vector<NamedArray> arrays = {{"o", DType::bf16, {2, 2}, o.data()},
                                          {"lse", DType::f32, {2}, lse.data()}};
  const std::string path = folder.path("x.safetensors");
  auto out = OutputFile::create(path, safetensors_file_bytes(arrays));
  ASSERT_TRUE(out.ok()) << out.status().message();
  ASSERT_TRUE(write_safetensors(*out, arrays).ok());
  ASSERT_TRUE(out->commit().ok());
  EXPECT_EQ(std::filesystem::file_size(path), safetensors_file_bytes(arrays));
  const Result<SafetensorsFile> file = SafetensorsFile::open(path);
  ASSERT_TRUE(file.ok()) << file.status().message();
  const Result<Array> o_read = file->tensor("o");
  ASSERT_TRUE(o_read.ok());
  EXPECT_EQ(o_read->dtype, DType::bf16);
  EXPECT_EQ(o_read->shape, arrays[0].shape);
  EXPECT_EQ(static_cast<const std::uint16_t*>(o_read->data)[3], 4);
  const Result<Array> lse_read = file->tensor("lse");
  ASSERT_TRUE(lse_read.ok());
  EXPECT_EQ(static_cast<const float*>(lse_read->data)[1], lse[1]);
}

}  // namespace
}  // namespace tilewright::files
