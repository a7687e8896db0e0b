// tests/problem/status_test.cpp: statuses, results and names.
#include "tilewright/status.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>

#include "tilewright/dtype.h"

namespace tilewright {
namespace {

TEST(Status, default_is_ok_and_says_nothing) {
  const Status status;
  EXPECT_TRUE(status.ok());
  EXPECT_TRUE(static_cast<bool>(status));
  EXPECT_EQ(status.code(), StatusCode::ok);
  EXPECT_EQ(status.message(), "");
}

TEST(Status, keeps_code_and_message) {
  const Status status(StatusCode::does_not_fit, "need 2, have 1");
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(status.code(), StatusCode::does_not_fit);
  EXPECT_EQ(status.message(), "need 2, have 1");
}

TEST(Status, every_code_has_a_name_of_its_own) {
  std::set<std::string_view> names;
  for (int code = 0; code <= 8; ++code) names.insert(name(static_cast<StatusCode>(code)));
  EXPECT_EQ(names.size(), 9u);
  EXPECT_EQ(names.count("unknown"), 0u);
  EXPECT_EQ(name(static_cast<StatusCode>(99)), "unknown");
  EXPECT_EQ(name(StatusCode::invalid_argument), "invalid argument");
}

TEST(Result, holds_a_value_or_the_status_that_says_why_not) {
  const Result<int> value = 3;
  ASSERT_TRUE(value.ok());
  EXPECT_EQ(*value, 3);
  EXPECT_TRUE(value.status().ok());
  const Result<int> none = Status(StatusCode::io_error, "gone");
  EXPECT_FALSE(none.ok());
  EXPECT_EQ(none.status().message(), "gone");
}

TEST(Result, gives_away_what_only_moves) {
  Result<std::unique_ptr<int>> result = std::make_unique<int>(5);
  const std::unique_ptr<int> taken = *std::move(result);
  EXPECT_EQ(*taken, 5);
}

TEST(DTypes, sizes_and_names) {
  EXPECT_EQ(size_bytes(DType::f32), 4u);
  EXPECT_EQ(size_bytes(DType::bf16), 2u);
  EXPECT_EQ(size_bytes(DType::f16), 2u);
  EXPECT_EQ(size_bytes(DType::boolean), 1u);
  EXPECT_EQ(size_bytes(DType::i64), 8u);
  EXPECT_EQ(name(DType::bf16), "bf16");
  EXPECT_EQ(name(static_cast<DType>(50)), "unknown");
  EXPECT_EQ(size_bytes(static_cast<DType>(50)), 0u);
}

}  // namespace
}  // namespace tilewright
