// src/backend/cuda/nvrtc_api.h: the part of the CUDA run-time compiler's C interface that
// Tilewright calls.
#pragma once

#include <cstddef>

namespace tilewright::cuda {

enum class NvrtcResult : int {
  success = 0,
  out_of_memory = 1,
  invalid_option = 5,
  compilation = 6
};

using NvrtcProgram = struct OpaqueProgram*;

/// The compiler's entry points. Tests put their own functions here.
struct NvrtcApi {
  const char* (*get_error_string)(NvrtcResult);
  NvrtcResult (*version)(int* major, int* minor);
  NvrtcResult (*create_program)(NvrtcProgram* program, const char* source, const char* name,
                                int header_count, const char* const* headers,
                                const char* const* include_names);
  NvrtcResult (*destroy_program)(NvrtcProgram* program);
  NvrtcResult (*compile_program)(NvrtcProgram, int option_count, const char* const* options);
  NvrtcResult (*get_log_size)(NvrtcProgram, std::size_t* bytes);
  NvrtcResult (*get_log)(NvrtcProgram, char* log);
  NvrtcResult (*get_cubin_size)(NvrtcProgram, std::size_t* bytes);
  NvrtcResult (*get_cubin)(NvrtcProgram, char* cubin);
};

}  // namespace tilewright::cuda
