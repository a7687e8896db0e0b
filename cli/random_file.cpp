// cli/random_file.cpp: random normal numbers, in memory and as .npy files.
#include "random_file.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "files/array.h"
#include "files/npy_header.h"
#include "files/output_file.h"
#include "reference/element.h"
#include "reference/random.h"

namespace tilewright::cli {
namespace {

// Box and Muller's method, both numbers of each pair.
void fill(reference::Random& random, void* data, DType dtype, std::int64_t elements) {
  for (std::int64_t i = 0; i < elements; i += 2) {
    const auto radius = std::sqrt(-2 * std::log(static_cast<float>(random.uniform())));
    const auto angle = 2 * std::numbers::pi_v<float> * static_cast<float>(random.uniform());
    reference::store(data, dtype, i, radius * std::cos(angle));
    if (i + 1 < elements) reference::store(data, dtype, i + 1, radius * std::sin(angle));
  }
}

}  // namespace

void fill_normal(void* data, DType dtype, std::int64_t elements, std::uint64_t seed) {
  reference::Random random(seed);
  fill(random, data, dtype, elements);
}

Status write_normal_npy(const std::string& path, DType dtype,
                        const std::vector<std::int64_t>& shape, std::uint64_t seed) {
  const std::string header = files::npy_header_text(dtype, shape);
  std::int64_t left = files::count_elements(shape).value_or(0);
  const auto element = static_cast<std::int64_t>(size_bytes(dtype));
  auto file =
      files::OutputFile::create(path, static_cast<std::int64_t>(header.size()) + left * element);
  if (!file.ok()) return file.status();
  Status status = file->write(header.data(), header.size());
  reference::Random random(seed);
  constexpr std::int64_t kPiece = 1 << 16;
  std::vector<float> piece(static_cast<std::size_t>(std::min(left, kPiece)));
  while (left > 0 && status.ok()) {
    const std::int64_t count = std::min(left, kPiece);
    fill(random, piece.data(), dtype, count);
    status = file->write(piece.data(), static_cast<std::size_t>(count * element));
    left -= count;
  }
  return status.ok() ? file->commit() : status;
}

}  // namespace tilewright::cli
