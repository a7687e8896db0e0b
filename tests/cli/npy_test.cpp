// tests/cli/npy_test.cpp: .npy files are read right, or refused by field, value and what is
// accepted.
#include "files/npy.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "file_text.h"

namespace tilewright::files {
namespace {

using test::as_file;
using test::bytes_of;
using test::npy_dict;
using test::npy_text;

Result<Array> read(std::string_view text) {
  return read_npy("'x.npy'", as_file(text));
}

float at(const Array& array, std::int64_t row, std::int64_t column) {
  return static_cast<const float*>(array.data)[row * array.strides[0] + column * array.strides[1]];
}

void expect_refused(std::string_view text, const std::vector<std::string>& words) {
  const Result<Array> array = read(text);
  ASSERT_FALSE(array.ok());
  EXPECT_EQ(array.status().code(), StatusCode::invalid_argument);
  for (const std::string& word : words) {
    EXPECT_NE(array.status().message().find(word), std::string::npos)
        << "no \"" << word << "\" in: " << array.status().message();
  }
  EXPECT_EQ(array.status().message().rfind("'x.npy': ", 0), 0u) << array.status().message();
  EXPECT_NE(array.status().message().find("; accepted: "), std::string::npos)
      << array.status().message();
}

const std::vector<float> kSix = {1, 2, 3, 4, 5, 6};

TEST(Npy, EveryVersionIsRead) {
  for (const int major : {1, 2, 3}) {
    const Result<Array> array = read(npy_text(npy_dict("<f4", "(2, 3)"), bytes_of(kSix), major));
    ASSERT_TRUE(array.ok()) << array.status().message();
    EXPECT_EQ(array->dtype, DType::f32);
    EXPECT_EQ(array->shape, (std::vector<std::int64_t>{2, 3}));
    EXPECT_EQ(array->strides, (std::vector<std::int64_t>{3, 1}));
    EXPECT_EQ(at(*array, 1, 0), 4);
  }
}

TEST(Npy, ReadingCopiesNothingWhereTheFileAllows) {
  const auto file = as_file(npy_text(npy_dict("<f4", "(2, 3)"), bytes_of(kSix)));
  const Result<Array> array = read_npy("x", file);
  ASSERT_TRUE(array.ok());
  const auto* data = static_cast<const std::byte*>(array->data);
  EXPECT_GE(data, file->bytes().data());
  EXPECT_LE(data + 24, file->bytes().data() + file->bytes().size());
}

TEST(Npy, HeadersAsOtherWritersFormatThem) {
  for (const char* dict :
       {"{'shape': (2, 3), 'fortran_order': False, 'descr': '<f4'}",
        "{\"descr\":\"<f4\",\"fortran_order\":False,\"shape\":(2,3)}",
        "  { 'descr' : '=f4' , 'fortran_order' : False , 'shape' : ( 2 , 3 , ) , } ",
        "{'descr': 'f4', 'fortran_order': False, 'shape': (2L, 3L), }"}) {
    for (const bool padded : {true, false}) {
      const Result<Array> array = read(npy_text(dict, bytes_of(kSix), 1, padded));
      ASSERT_TRUE(array.ok()) << dict << ": " << array.status().message();
      EXPECT_EQ(at(*array, 1, 2), 6) << dict;
    }
  }
}

TEST(Npy, FortranOrderIsReadRight) {
  // Column by column: (1 3 5; 2 4 6).
  const Result<Array> array = read(npy_text(npy_dict("<f4", "(2, 3)", true), bytes_of(kSix)));
  ASSERT_TRUE(array.ok()) << array.status().message();
  EXPECT_EQ(array->strides, (std::vector<std::int64_t>{1, 2}));
  EXPECT_FALSE(array->contiguous());
  EXPECT_EQ(at(*array, 0, 1), 3);
  EXPECT_EQ(at(*array, 1, 2), 6);
}

TEST(Npy, BigEndianIsReadRight) {
  for (const bool fortran_order : {false, true}) {
    const Result<Array> array =
        read(npy_text(npy_dict(">f4", "(2, 3)", fortran_order), test::swapped(bytes_of(kSix), 4)));
    ASSERT_TRUE(array.ok()) << array.status().message();
    EXPECT_EQ(at(*array, 1, 0), fortran_order ? 2 : 4);
  }
  const std::vector<std::int64_t> lengths = {0, 7, -(std::int64_t{1} << 40)};
  const Result<Array> integers =
      read(npy_text(npy_dict(">i8", "(3,)"), test::swapped(bytes_of(lengths), 8)));
  ASSERT_TRUE(integers.ok()) << integers.status().message();
  EXPECT_EQ(static_cast<const std::int64_t*>(integers->data)[2], lengths[2]);
}

TEST(Npy, F64IsRoundedAndSaysSo) {
  const std::vector<double> values = {1.0 / 3, -std::numeric_limits<double>::infinity(),
                                      std::numeric_limits<double>::quiet_NaN(), 1e-60};
  for (const bool big : {false, true}) {
    const std::string data = bytes_of(values);
    const Result<Array> array = read(
        npy_text(npy_dict(big ? ">f8" : "<f8", "(2, 2)"), big ? test::swapped(data, 8) : data));
    ASSERT_TRUE(array.ok()) << array.status().message();
    EXPECT_EQ(array->dtype, DType::f32);
    EXPECT_EQ(array->converted_from, "f64");
    EXPECT_EQ(at(*array, 0, 0), 1.0f / 3);
    EXPECT_EQ(at(*array, 0, 1), -std::numeric_limits<float>::infinity());
    EXPECT_TRUE(std::isnan(at(*array, 1, 0)));
    EXPECT_EQ(at(*array, 1, 1), 0);
  }
  expect_refused(npy_text(npy_dict("<f8", "(2,)"), bytes_of(std::vector<double>{1, 1e39})),
                 {"element 1 is 1e+39", "within f32"});
}

TEST(Npy, TypesByName) {
  const std::string two_bytes = bytes_of(std::vector<std::uint16_t>{0x3f80, 0x4000});
  for (const auto& [descr, dtype] : {std::pair{"<f2", DType::f16},
                                     {"|V2", DType::bf16},
                                     {"<V2", DType::bf16},
                                     {"bfloat16", DType::bf16}}) {
    const Result<Array> array = read(npy_text(npy_dict(descr, "(2,)"), two_bytes));
    ASSERT_TRUE(array.ok()) << array.status().message();
    EXPECT_EQ(array->dtype, dtype) << descr;
    EXPECT_EQ(static_cast<const std::uint16_t*>(array->data)[1], 0x4000) << descr;
  }
  const Result<Array> boolean = read(npy_text(npy_dict("|b1", "(3,)"), std::string("\0\1\1", 3)));
  ASSERT_TRUE(boolean.ok());
  EXPECT_EQ(boolean->dtype, DType::boolean);
  for (const char* descr : {"<f16", "<c8", "<i2", "|u1", "|S8", "|O", "<M8[ns]", ">V2", "<V4", "",
                            "<", "f", "float32", "<f44"}) {
    expect_refused(npy_text(npy_dict(descr, "(2,)"), two_bytes),
                   {"descr", "'" + std::string(descr) + "'"});
  }
  expect_refused(
      npy_text("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }", "abcd"),
      {"descr", "[("});
}

TEST(Npy, EmptyArraysAndScalars) {
  for (const char* shape :
       {"(0,)", "(0, 4)", "(4, 0)", "(4611686018427387904, 4611686018427387904, 0)"}) {
    const Result<Array> array = read(npy_text(npy_dict("<f4", shape), ""));
    ASSERT_TRUE(array.ok()) << array.status().message();
    EXPECT_EQ(array->elements(), 0) << shape;
  }
  const Result<Array> scalar =
      read(npy_text(npy_dict("<f4", "()"), bytes_of(std::vector<float>{7})));
  ASSERT_TRUE(scalar.ok()) << scalar.status().message();
  EXPECT_EQ(scalar->shape.size(), 0u);
  EXPECT_EQ(*static_cast<const float*>(scalar->data), 7);
}

TEST(Npy, DataAtAnOddAddressIsCopiedToAnEvenOne) {
  std::string dict = npy_dict("<f4", "(2, 3)");
  for (int extra = 0; extra < 4; ++extra) {
    const Result<Array> array = read(npy_text(dict, bytes_of(kSix), 1, false));
    ASSERT_TRUE(array.ok());
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(array->data) % 4, 0u);
    EXPECT_EQ(at(*array, 1, 1), 5);
    dict += ' ';
  }
}

TEST(Npy, EveryTruncationIsRefused) {
  const std::string whole = npy_text(npy_dict("<f4", "(2, 3)"), bytes_of(kSix));
  ASSERT_TRUE(read(whole).ok());
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(read(std::string_view(whole).substr(0, size)).ok()) << size << " bytes";
  }
}

TEST(Npy, TrailingBytesAreRefused) {
  const std::string whole = npy_text(npy_dict("<f4", "(2, 3)"), bytes_of(kSix));
  expect_refused(whole + "x", {"shape", "(2, 3)", "25 bytes"});
  expect_refused(whole + "four", {"shape", "(2, 3)", "28 bytes"});
}

TEST(Npy, LyingHeadersAreRefused) {
  const std::string data = bytes_of(kSix);
  const auto with_shape = [&](const char* shape) { return npy_text(npy_dict("<f4", shape), data); };
  expect_refused(with_shape("(2, 4)"), {"shape is (2, 4)", "24 bytes"});
  // Products that pass 64 bits, wrapping to six elements or not.
  expect_refused(with_shape("(9223372036854775807, 2)"), {"shape is (9223372036854775807, 2)"});
  expect_refused(with_shape("(6148914691236517206, 4)"), {"shape"});
  expect_refused(with_shape("(2305843009213693953, 8)"), {"shape"});
  expect_refused(with_shape("(99999999999999999999, 1)"), {"shape", "99999999999999999999"});
  expect_refused(with_shape("(-2, -3)"), {"shape is (-2, -3)"});
  expect_refused(with_shape("(nan, 3)"), {"shape", "nan"});
  expect_refused(with_shape("(2.0, 3)"), {"shape"});
  expect_refused(with_shape("(6)"), {"shape", "(6)"});
  expect_refused(with_shape("6"), {"shape"});
  expect_refused(with_shape("[2, 3]"), {"shape"});
  expect_refused(with_shape("(2, 3"), {"shape"});
  expect_refused(with_shape("(,)"), {"shape"});
  expect_refused(with_shape("(2 3)"), {"shape"});
  std::string many = "(";
  for (int i = 0; i < 40; ++i) many += "1, ";
  expect_refused(with_shape((many + ")").c_str()), {"shape", "32"});
}

TEST(Npy, BrokenDictsAreRefused) {
  const std::string data = bytes_of(kSix);
  const auto with = [&](const char* dict) { return npy_text(dict, data); };
  expect_refused(with(""), {"header"});
  expect_refused(with("[]"), {"header", "[]"});
  expect_refused(with("{}"), {"descr", "absent"});
  expect_refused(with("{'descr': '<f4', 'shape': (2, 3), }"), {"fortran_order", "absent"});
  expect_refused(with("{'descr': '<f4', 'fortran_order': 0, 'shape': (2, 3), }"),
                 {"fortran_order", "'0,"});
  expect_refused(with("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)}"),
                 {"'descr' a second time"});
  expect_refused(with("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), 'x': 1}"),
                 {"header key is 'x'"});
  expect_refused(with("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)} + 1"), {"'+ 1"});
  expect_refused(with("{'descr': '<f4' 'fortran_order': False, 'shape': (2, 3)}"),
                 {"after a value"});
  expect_refused(with("{'descr': '<f4"), {"descr"});
  expect_refused(with("{'des\\x63r': '<f4', 'fortran_order': False, 'shape': (2, 3)}"), {"key"});
}

TEST(Npy, WrongPreludesAreRefused) {
  const std::string whole = npy_text(npy_dict("<f4", "(2, 3)"), bytes_of(kSix));
  expect_refused("", {"magic", "empty"});
  expect_refused("PK\3\4 a zip archive (.npz)", {"magic", "'PK\\x03\\x04 a'"});
  for (const int major : {0, 4, 255}) {
    std::string other = whole;
    other[6] = static_cast<char>(major);
    expect_refused(other, {"version is " + std::to_string(major) + ".0"});
  }
  std::string minor = whole;
  minor[7] = 1;
  expect_refused(minor, {"version is 1.1"});
  std::string long_header = whole;
  long_header[8] = long_header[9] = '\xff';
  expect_refused(long_header, {"header length is 65535"});
  std::string huge = npy_text(npy_dict("<f4", "(2, 3)"), bytes_of(kSix), 2);
  huge[11] = '\xff';
  expect_refused(huge, {"header length is 42781"});
}

TEST(Npy, MessagesHoldNoControlCharacters) {
  const Result<Array> array =
      read(npy_text("{'\x1b[31mevil\n': 1, 'descr': '<f4'}", bytes_of(kSix)));
  ASSERT_FALSE(array.ok());
  EXPECT_EQ(array.status().message().find('\x1b'), std::string::npos);
  EXPECT_NE(array.status().message().find("\\x1b"), std::string::npos);
}

TEST(Npy, PathsThatCannotBeReadAreRefused) {
  const test::ScratchFolder folder;
  for (const auto& [path, word] : {std::pair{folder.path("none.npy"), "No such file"},
                                   {folder.path(""), "a directory"},
                                   {std::string("/dev/zero"), "a device"},
                                   {std::string(), "No such file"}}) {
    const Result<Array> array = read_npy(path);
    ASSERT_FALSE(array.ok()) << path;
    EXPECT_NE(array.status().message().find(word), std::string::npos) << array.status().message();
  }
}

TEST(Npy, WhatIsWrittenIsReadBack) {
  const test::ScratchFolder folder;
  const std::vector<std::int64_t> shape = {3, 1, 2};
  for (const DType dtype :
       {DType::f32, DType::bf16, DType::f16, DType::boolean, DType::i32, DType::i64}) {
    std::string data;
    for (std::size_t i = 0; i < 6 * size_bytes(dtype); ++i) data += static_cast<char>(37 * i + 1);
    const std::string path = folder.path("x.npy");
    auto file = OutputFile::create(path, npy_file_bytes(dtype, shape));
    ASSERT_TRUE(file.ok()) << file.status().message();
    ASSERT_TRUE(write_npy(*file, dtype, shape, data.data()).ok());
    ASSERT_TRUE(file->commit().ok());
    EXPECT_EQ(std::filesystem::file_size(path), npy_file_bytes(dtype, shape));
    const Result<Array> array = read_npy(path);
    ASSERT_TRUE(array.ok()) << array.status().message();
    EXPECT_EQ(array->dtype, dtype);
    EXPECT_EQ(array->shape, shape);
    EXPECT_EQ(std::string(static_cast<const char*>(array->data), data.size()), data);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(array->data) % 64, 0u);
  }
}

}  // namespace
}  // namespace tilewright::files
