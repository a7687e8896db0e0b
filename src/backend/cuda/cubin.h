// src/backend/cuda/cubin.h: reads a compiled kernel's registers, stack and shared memory from its
// ELF image.
#pragma once

#include <string>
#include <string_view>

#include "tilewright/status.h"

namespace tilewright::cuda {

struct CubinFacts {
  int register_count = 0;
  int stack_bytes = 0;  ///< Local memory of a thread: spilled registers and indexed arrays.
  int static_shared_bytes = 0;
  std::size_t code_bytes = 0;
  int matrix_instructions = 0;  ///< HGMMA: asynchronous products of a warpgroup
  int local_instructions = 0;   ///< LDL and STL: local memory
};

/// The facts of the kernel `entry`, or why the image does not hold it.
Result<CubinFacts> read_cubin(std::string_view image, const std::string& entry);

}  // namespace tilewright::cuda
