// tests/cli/mutation_test.cpp: random damage to valid files is refused or read within the file.
#include <gtest/gtest.h>

#include <cctype>
#include <random>

#include "file_text.h"
#include "files/npy.h"
#include "files/safetensors.h"
#include "support/scale.h"

namespace tilewright::files {
namespace {

using test::as_file;

// Kinds of damage that real files and hostile ones have.
std::string mutate(std::string text, std::mt19937_64& random) {
  const auto below = [&](std::size_t count) {
    return std::uniform_int_distribution<std::size_t>(0, count == 0 ? 0 : count - 1)(random);
  };
  for (std::size_t i = 0, mutations = 1 + below(4); i < mutations && !text.empty(); ++i) {
    const std::size_t at = below(text.size());
    switch (below(7)) {
      case 0:
        text[at] = static_cast<char>(text[at] ^ (1 << below(8)));
        break;
      case 1:
        text[at] = static_cast<char>(below(256));
        break;
      case 2:
        text.resize(at);
        break;
      case 3:
        text.insert(at, below(9), static_cast<char>(below(256)));
        break;
      case 4:  // a digit, where there is one: sizes and offsets that lie
        for (std::size_t j = at; j < text.size(); ++j) {
          if (std::isdigit(static_cast<unsigned char>(text[j])) == 0) continue;
          text[j] = static_cast<char>('0' + below(10));
          break;
        }
        break;
      case 5:  // a copy of one part over another
        text.replace(below(text.size()), below(16), text.substr(at, below(16)));
        break;
      default:
        text.erase(at, below(16));
        break;
    }
  }
  return text;
}

// Every element lies within memory: reading the first and last byte of each row must not fault.
std::uint64_t touch(const Array& array) {
  const std::int64_t elements = array.elements();
  if (elements == 0) return 0;
  std::int64_t last = 0;
  for (std::size_t axis = 0; axis < array.shape.size(); ++axis) {
    last += (array.shape[axis] - 1) * array.strides[axis];
  }
  EXPECT_EQ(last, elements - 1);
  const auto* bytes = static_cast<const unsigned char*>(array.data);
  std::uint64_t sum = 0;
  for (std::int64_t i = 0; i < array.bytes(); ++i) sum += bytes[i];
  return sum;
}

template <typename Read>
void mutate_many(const std::vector<std::string>& valid, Read read) {
  const std::uint64_t seed = test::first_seed(std::random_device{}());
  std::mt19937_64 random(seed);
  const std::int64_t count = test::scaled(20'000);
  std::int64_t accepted = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    SCOPED_TRACE("TILEWRIGHT_TEST_SEED=" + std::to_string(seed) + ", file " + std::to_string(i));
    const std::string text = mutate(valid[static_cast<std::size_t>(i) % valid.size()], random);
    const Status status = read(text);
    if (status.ok()) {
      ++accepted;
      continue;
    }
    ASSERT_EQ(status.code(), StatusCode::invalid_argument) << status.message();
    for (const char c : status.message()) ASSERT_GE(c, 0x20) << status.message();
    ASSERT_LT(status.message().size(), 2000u);
  }
  std::printf("seed %llu: %lld damaged files, %lld of them still valid\n",
              static_cast<unsigned long long>(seed), static_cast<long long>(count),
              static_cast<long long>(accepted));
  // Damage that is never refused, or always, would mean that nothing is tested.
  EXPECT_LT(accepted, count);
  if (count >= 1000) {
    EXPECT_GT(accepted, 0);
  }
}

TEST(Mutation, DamagedNpyFilesAreRefusedOrReadInBounds) {
  const std::string data = test::bytes_of(std::vector<float>(24, 1.0f));
  mutate_many({test::npy_text(test::npy_dict("<f4", "(2, 3, 4)"), data),
               test::npy_text(test::npy_dict(">f4", "(24,)", true), data, 2),
               test::npy_text(test::npy_dict("<f8", "(3, 4)"), data, 3),
               test::npy_text(test::npy_dict("|b1", "(96, 1)"), data),
               test::npy_text(test::npy_dict("<V2", "(0, 48)"), "")},
              [](const std::string& text) -> Status {
                const Result<Array> array = read_npy("'x'", as_file(text));
                if (!array.ok()) return array.status();
                touch(*array);
                return {};
              });
}

TEST(Mutation, DamagedSafetensorsFilesAreRefusedOrReadInBounds) {
  const std::string json =
      R"({"q":{"dtype":"F32","shape":[2,4],"data_offsets":[0,32]},)"
      R"("k":{"dtype":"BF16","shape":[2,8],"data_offsets":[32,64]},)"
      R"("v":{"dtype":"F64","shape":[4],"data_offsets":[64,96]},"__metadata__":{"a":"b"}})";
  mutate_many({test::safetensors_text(json, std::string(96, '\1'))},
              [](const std::string& text) -> Status {
                const Result<SafetensorsFile> file = SafetensorsFile::open("'x'", as_file(text));
                if (!file.ok()) return file.status();
                for (const std::string& name : file->names()) {
                  const Result<Array> array = file->tensor(name);
                  if (!array.ok()) return array.status();
                  touch(*array);
                }
                return {};
              });
}

}  // namespace
}  // namespace tilewright::files
