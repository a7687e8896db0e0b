// cli/files/npy.h: reads and writes NumPy's .npy files.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "files/array.h"
#include "files/file_bytes.h"
#include "files/output_file.h"

namespace tilewright::files {

/// Reads versions 1 to 3, C or Fortran order, either byte order; types f4, f2, f8 (rounded to f32),
/// bfloat16 or V2 (bf16 as ml_dtypes writes it), i4, i8 and b1. Refuses everything else by name.
Result<Array> read_npy(const std::string& path);
Result<Array> read_npy(const std::string& label, std::shared_ptr<const FileBytes> file);

/// Size of the file that write_npy makes.
std::int64_t npy_file_bytes(DType dtype, std::span<const std::int64_t> shape);

/// Writes a C-ordered array; bf16 as '<V2', which ml_dtypes and read_npy take for bfloat16.
Status write_npy(OutputFile& file, DType dtype, std::span<const std::int64_t> shape,
                 const void* data);

}  // namespace tilewright::files
