// cli/random_file.h: random normal numbers, in memory and as .npy files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tilewright/dtype.h"
#include "tilewright/status.h"

namespace tilewright::cli {

/// Standard normal values rounded to dtype; the same for a seed on every machine, up to the last
/// bits of its logarithm.
void fill_normal(void* data, DType dtype, std::int64_t elements, std::uint64_t seed);

/// A new .npy file of random normal values, written a piece at a time.
Status write_normal_npy(const std::string& path, DType dtype,
                        const std::vector<std::int64_t>& shape, std::uint64_t seed);

}  // namespace tilewright::cli
