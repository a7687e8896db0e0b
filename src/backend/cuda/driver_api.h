// src/backend/cuda/driver_api.h: the part of the CUDA driver's C interface that Tilewright calls,
// declared here so that no CUDA header is needed to build.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tilewright::cuda {

/// A driver call's result; only the values that Tilewright tells apart are named.
enum class DriverResult : int {
  success = 0,
  invalid_value = 1,
  out_of_memory = 2,
  no_device = 100,
  invalid_image = 200,
  invalid_context = 201,
  no_binary_for_gpu = 209,
  unsupported_ptx_version = 222,
  not_found = 500,
};

using DeviceOrdinal = int;
using DevicePointer = unsigned long long;
using ContextHandle = struct OpaqueContext*;
using StreamHandle = struct OpaqueStream*;
using EventHandle = struct OpaqueEvent*;
using FunctionHandle = struct OpaqueFunction*;
using KernelHandle = struct OpaqueKernel*;
using LibraryHandle = struct OpaqueLibrary*;

/// Device attributes that describe a Machine.
enum class DeviceAttribute : int {
  warp_size = 10,
  clock_rate_khz = 13,
  multiprocessor_count = 16,
  memory_clock_rate_khz = 36,
  memory_bus_width_bits = 37,
  l2_cache_size_bytes = 38,
  compute_capability_major = 75,
  compute_capability_minor = 76,
  shared_memory_per_multiprocessor_bytes = 81,
  registers_per_multiprocessor = 82,
  shared_memory_per_block_optin_bytes = 97,
};

/// Kernel attributes that Tilewright reads or sets.
enum class FunctionAttribute : int {
  max_threads_per_block = 0,
  static_shared_bytes = 1,
  local_bytes = 3,
  register_count = 4,
  max_dynamic_shared_bytes = 8,
};

enum class CaptureStatus : int { none = 0, active = 1, invalidated = 2 };

enum class TensorMapDataType : int { f16 = 6, f32 = 7, bf16 = 9 };
enum class TensorMapInterleave : int { none = 0 };
enum class TensorMapSwizzle : int { none = 0, bytes_32 = 1, bytes_64 = 2, bytes_128 = 3 };
enum class TensorMapPromotion : int {
  none = 0,
  l2_64_bytes = 1,
  l2_128_bytes = 2,
  l2_256_bytes = 3
};
enum class TensorMapFill : int { zeros = 0 };

/// What TMA reads of a tensor: opaque, written by the driver, passed to kernels by value.
struct alignas(64) TensorMap {
  std::uint64_t opaque[16];
};
static_assert(sizeof(TensorMap) == 128 && alignof(TensorMap) == 64);

/// How a kernel is launched, as CUlaunchConfig.
enum class LaunchAttributeId : int { programmatic_stream_serialization = 6 };

struct LaunchAttribute {
  LaunchAttributeId id = LaunchAttributeId::programmatic_stream_serialization;
  alignas(8) int allowed = 1;  ///< the first of the value's 64 bytes
  int unused[15] = {};
};
static_assert(sizeof(LaunchAttribute) == 72);

struct LaunchConfig {
  unsigned grid[3] = {1, 1, 1};
  unsigned block[3] = {1, 1, 1};
  unsigned dynamic_shared_bytes = 0;
  StreamHandle stream = nullptr;
  LaunchAttribute* attributes = nullptr;
  unsigned attribute_count = 0;
};
static_assert(sizeof(LaunchConfig) == 56);

/// The driver's entry points. Tests put their own functions here.
struct DriverApi {
  DriverResult (*init)(unsigned flags);
  DriverResult (*driver_get_version)(int* version);
  DriverResult (*get_error_name)(DriverResult, const char** name);
  DriverResult (*get_error_string)(DriverResult, const char** text);

  DriverResult (*device_get_count)(int* count);
  DriverResult (*device_get)(DeviceOrdinal* device, int ordinal);
  DriverResult (*device_get_name)(char* name, int capacity, DeviceOrdinal);
  DriverResult (*device_get_attribute)(int* value, DeviceAttribute, DeviceOrdinal);
  DriverResult (*device_total_memory)(std::size_t* bytes, DeviceOrdinal);

  DriverResult (*primary_context_retain)(ContextHandle* context, DeviceOrdinal);
  DriverResult (*primary_context_release)(DeviceOrdinal);
  DriverResult (*context_get_current)(ContextHandle* context);
  DriverResult (*context_set_current)(ContextHandle);
  DriverResult (*context_get_device)(DeviceOrdinal* device);
  DriverResult (*context_get_id)(ContextHandle, unsigned long long* id);

  DriverResult (*library_load_data)(LibraryHandle* library, const void* image, void* jit_options,
                                    void** jit_values, unsigned jit_count, void* options,
                                    void** values, unsigned count);
  DriverResult (*library_unload)(LibraryHandle);
  DriverResult (*library_get_kernel)(KernelHandle* kernel, LibraryHandle, const char* name);
  DriverResult (*kernel_get_function)(FunctionHandle* function, KernelHandle);
  DriverResult (*function_get_attribute)(int* value, FunctionAttribute, FunctionHandle);
  DriverResult (*function_set_attribute)(FunctionHandle, FunctionAttribute, int value);
  DriverResult (*launch_kernel)(const LaunchConfig*, FunctionHandle, void** parameters,
                                void** extra);
  DriverResult (*tensor_map_encode_tiled)(TensorMap*, TensorMapDataType, std::uint32_t rank,
                                          void* address, const std::uint64_t* dims,
                                          const std::uint64_t* strides_bytes,
                                          const std::uint32_t* box, const std::uint32_t* steps,
                                          TensorMapInterleave, TensorMapSwizzle, TensorMapPromotion,
                                          TensorMapFill);

  DriverResult (*memory_allocate)(DevicePointer* address, std::size_t bytes);
  DriverResult (*memory_free)(DevicePointer);
  DriverResult (*memory_set_async)(DevicePointer, unsigned char value, std::size_t bytes,
                                   StreamHandle);
  DriverResult (*copy_to_device_async)(DevicePointer, const void* source, std::size_t bytes,
                                       StreamHandle);
  DriverResult (*copy_to_host_async)(void* target, DevicePointer, std::size_t bytes, StreamHandle);

  DriverResult (*stream_is_capturing)(StreamHandle, CaptureStatus* status);
  DriverResult (*stream_create)(StreamHandle* stream, unsigned flags);
  DriverResult (*stream_destroy)(StreamHandle);
  DriverResult (*stream_synchronize)(StreamHandle);
  DriverResult (*event_create)(EventHandle* event, unsigned flags);
  DriverResult (*event_destroy)(EventHandle);
  DriverResult (*event_record)(EventHandle, StreamHandle);
  DriverResult (*event_synchronize)(EventHandle);
  DriverResult (*event_elapsed_ms)(float* milliseconds, EventHandle start, EventHandle end);
};

/// The functions that resolve a name at a version of the interface, as cuGetProcAddress_v2 does.
using ResolveSymbol = DriverResult (*)(const char* symbol, void** address, int version,
                                       std::uint64_t flags, int* symbol_status);

}  // namespace tilewright::cuda
