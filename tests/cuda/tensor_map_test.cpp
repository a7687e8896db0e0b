// tests/cuda/tensor_map_test.cpp: Case09, which operands the copy engine may read, and how they are
// described to it.
#include "backend/cuda/tensor_map.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/cuda/fake_driver.h"

namespace tilewright::cuda {
namespace {

OperandShape good_shape() {
  return {DType::bf16, 2, 100, 4, 128, Strides::bshd(100, 4, 128), 16};
}

TEST(Case09_TensorMap, PlainOperandsAreAccepted) {
  EXPECT_EQ(copy_engine_refusal("q", good_shape()), "");
  OperandShape shape = good_shape();
  shape.strides = Strides::bhsd(100, 4, 128);
  EXPECT_EQ(copy_engine_refusal("q", shape), "");
}

TEST(Case09_TensorMap, RefusalNamesTheOperandTheFieldAndTheValue) {
  const auto refusal = [](auto change) {
    OperandShape shape = good_shape();
    change(shape);
    return copy_engine_refusal("k", shape);
  };
  EXPECT_EQ(refusal([](OperandShape& s) { s.alignment_bytes = 8; }),
            "k.alignment_bytes is 8; TMA needs 16");
  EXPECT_EQ(refusal([](OperandShape& s) { s.strides.dim = 2; }), "k.strides.dim is 2; TMA needs 1");
  for (const std::int64_t stride : {std::int64_t{0}, std::int64_t{-512}, std::int64_t{508},
                                    std::int64_t{1} << 39, std::int64_t{1} << 56}) {
    const std::string text = refusal([&](OperandShape& s) { s.strides.token = stride; });
    EXPECT_NE(text.find("k.strides.token is " + std::to_string(stride)), std::string::npos) << text;
  }
  EXPECT_NE(refusal([](OperandShape& s) { s.strides.head = 0; }), "");
  EXPECT_NE(refusal([](OperandShape& s) { s.strides.batch = 0; }), "");
  EXPECT_NE(refusal([](OperandShape& s) { s.rows = std::int64_t{1} << 31; }), "");
}

TEST(Case09_TensorMap, StridesOfAxesOfOneElementAreIgnored) {
  OperandShape shape = good_shape();
  shape.batch = 1;
  shape.heads = 1;
  shape.strides.batch = -3;
  shape.strides.head = 0;
  EXPECT_EQ(copy_engine_refusal("q", shape), "");
  alignas(16) static char data[16];
  EXPECT_TRUE(encode_tensor_map(fake_driver_api(), "q", shape, data, {64, 128}).ok());
}

TEST(Case09_TensorMap, DescribesExtentsStridesAndBox) {
  alignas(16) static char data[16];
  const Result<TensorMap> map =
      encode_tensor_map(fake_driver_api(), "q", good_shape(), data, {64, 128});
  ASSERT_TRUE(map.ok()) << map.status().message();
  const std::uint64_t extents[] = {128, 100, 4, 2};
  const std::uint64_t strides[] = {1024, 256, 102400};
  const std::uint64_t box[] = {64, 128, 1, 1};
  EXPECT_TRUE(std::equal(extents, extents + 4, map->opaque));
  EXPECT_TRUE(std::equal(strides, strides + 3, map->opaque + 5));
  EXPECT_TRUE(std::equal(box, box + 4, map->opaque + 10));
}

TEST(Case09_TensorMap, HeadsOfAPackComeBeforeRows) {
  alignas(16) static char data[16];
  const Result<TensorMap> map =
      encode_tensor_map(fake_driver_api(), "q", good_shape(), data, {64, 32, 2});
  ASSERT_TRUE(map.ok()) << map.status().message();
  const std::uint64_t extents[] = {128, 2, 100, 2, 2};
  const std::uint64_t strides[] = {256, 1024, 512, 102400};
  const std::uint64_t box[] = {64, 2, 32, 1, 1};
  EXPECT_TRUE(std::equal(extents, extents + 5, map->opaque));
  EXPECT_TRUE(std::equal(strides, strides + 4, map->opaque + 5));
  EXPECT_TRUE(std::equal(box, box + 5, map->opaque + 10));
}

TEST(Case09_TensorMap, EmptyOperandsEncodeAsOneElement) {
  OperandShape shape = good_shape();
  shape.rows = 0;
  shape.batch = 0;
  alignas(16) static char data[16];
  EXPECT_EQ(copy_engine_refusal("q", shape), "");
  EXPECT_TRUE(encode_tensor_map(fake_driver_api(), "q", shape, data, {64, 128}).ok());
}

TEST(Case09_TensorMap, WhateverIsNotRefusedEncodes) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  const auto pick = [&](std::initializer_list<std::int64_t> values) {
    return values.begin()[random() % values.size()];
  };
  alignas(16) static char data[16];
  int accepted = 0;
  for (int turn = 0; turn < 5000; ++turn) {
    OperandShape shape;
    shape.dtype = turn % 2 ? DType::bf16 : DType::f16;
    shape.batch = pick({0, 1, 2, 1000000});
    shape.rows = pick({0, 1, 63, 1 << 20, (std::int64_t{1} << 31) - 1, std::int64_t{1} << 31});
    shape.heads = pick({1, 2, 128});
    shape.dim = pick({1, 64, 72, 255, 256});
    shape.strides = {pick({0, 8, 1024, -8, std::int64_t{1} << 38, std::int64_t{1} << 39}),
                     pick({0, 8, 12, 64, 1024}), pick({0, 8, 64, 1 << 20}), pick({1, 1, 1, 0, 2})};
    shape.alignment_bytes = pick({2, 16, 128});
    if (!copy_engine_refusal("v", shape).empty()) continue;
    ++accepted;
    const Result<TensorMap> map = encode_tensor_map(fake_driver_api(), "v", shape, data, {64, 176});
    ASSERT_TRUE(map.ok()) << map.status().message();
  }
  EXPECT_GT(accepted, 50);
}

TEST(Case09_TensorMap, DriversRefusalIsReported) {
  static char data[32];
  const char* odd = data + (reinterpret_cast<std::uintptr_t>(data) % 16 == 8 ? 0 : 8);
  const Result<TensorMap> map =
      encode_tensor_map(fake_driver_api(), "q", good_shape(), odd + 1, {64, 128});
  ASSERT_FALSE(map.ok());
  EXPECT_NE(map.status().message().find("describing q"), std::string::npos)
      << map.status().message();
}

}  // namespace
}  // namespace tilewright::cuda
