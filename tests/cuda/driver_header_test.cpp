// tests/cuda/driver_header_test.cpp: our declarations of the driver's interface against cuda.h,
// where there is one.
#include <gtest/gtest.h>

#include "backend/cuda/driver_api.h"

#if __has_include(<cuda.h>)
#include <cuda.h>

#include <type_traits>

namespace tilewright::cuda {
namespace {

// Compatible to call: as many parameters, each as large and of the same kind.
template <typename Ours, typename Theirs>
constexpr bool same_kind() {
  return sizeof(Ours) == sizeof(Theirs) && std::is_pointer_v<Ours> == std::is_pointer_v<Theirs> &&
         std::is_floating_point_v<Ours> == std::is_floating_point_v<Theirs>;
}

template <typename Ours, typename Theirs>
struct Compatible : std::false_type {};

template <typename OurResult, typename... Ours, typename TheirResult, typename... Theirs>
requires(sizeof...(Ours) ==
         sizeof...(Theirs)) struct Compatible<OurResult (*)(Ours...), TheirResult(Theirs...)>
    : std::bool_constant<(same_kind<OurResult, TheirResult>() && ... &&
                          same_kind<Ours, Theirs>())> {
};

template <typename Ours, typename Theirs>
constexpr void expect_compatible() {
  static_assert(Compatible<Ours, Theirs>::value);
}

static_assert(!Compatible<int (*)(int), int(int, int)>::value, "the check can fail: count");
static_assert(!Compatible<int (*)(int), int(long)>::value, "the check can fail: size");
static_assert(!Compatible<int (*)(float), int(int)>::value, "the check can fail: kind");
static_assert(!Compatible<int (*)(long), int(void*)>::value, "the check can fail: pointer");

TEST(DriverHeader, EntryPointsTakeTheSameArguments) {
  expect_compatible<decltype(DriverApi::init), decltype(cuInit)>();
  expect_compatible<decltype(DriverApi::driver_get_version), decltype(cuDriverGetVersion)>();
  expect_compatible<decltype(DriverApi::get_error_name), decltype(cuGetErrorName)>();
  expect_compatible<decltype(DriverApi::get_error_string), decltype(cuGetErrorString)>();
  expect_compatible<decltype(DriverApi::device_get_count), decltype(cuDeviceGetCount)>();
  expect_compatible<decltype(DriverApi::device_get), decltype(cuDeviceGet)>();
  expect_compatible<decltype(DriverApi::device_get_name), decltype(cuDeviceGetName)>();
  expect_compatible<decltype(DriverApi::device_get_attribute), decltype(cuDeviceGetAttribute)>();
  expect_compatible<decltype(DriverApi::device_total_memory), decltype(cuDeviceTotalMem)>();
  expect_compatible<decltype(DriverApi::primary_context_retain),
                    decltype(cuDevicePrimaryCtxRetain)>();
  expect_compatible<decltype(DriverApi::primary_context_release),
                    decltype(cuDevicePrimaryCtxRelease)>();
  expect_compatible<decltype(DriverApi::context_get_current), decltype(cuCtxGetCurrent)>();
  expect_compatible<decltype(DriverApi::context_set_current), decltype(cuCtxSetCurrent)>();
  expect_compatible<decltype(DriverApi::context_get_device), decltype(cuCtxGetDevice)>();
  expect_compatible<decltype(DriverApi::context_get_id), decltype(cuCtxGetId)>();
  expect_compatible<decltype(DriverApi::library_load_data), decltype(cuLibraryLoadData)>();
  expect_compatible<decltype(DriverApi::library_unload), decltype(cuLibraryUnload)>();
  expect_compatible<decltype(DriverApi::library_get_kernel), decltype(cuLibraryGetKernel)>();
  expect_compatible<decltype(DriverApi::kernel_get_function), decltype(cuKernelGetFunction)>();
  expect_compatible<decltype(DriverApi::function_get_attribute), decltype(cuFuncGetAttribute)>();
  expect_compatible<decltype(DriverApi::function_set_attribute), decltype(cuFuncSetAttribute)>();
  expect_compatible<decltype(DriverApi::launch_kernel), decltype(cuLaunchKernelEx)>();
  expect_compatible<decltype(DriverApi::tensor_map_encode_tiled),
                    decltype(cuTensorMapEncodeTiled)>();
  expect_compatible<decltype(DriverApi::memory_allocate), decltype(cuMemAlloc)>();
  expect_compatible<decltype(DriverApi::memory_free), decltype(cuMemFree)>();
  expect_compatible<decltype(DriverApi::memory_set_async), decltype(cuMemsetD8Async)>();
  expect_compatible<decltype(DriverApi::copy_to_device_async), decltype(cuMemcpyHtoDAsync)>();
  expect_compatible<decltype(DriverApi::copy_to_host_async), decltype(cuMemcpyDtoHAsync)>();
  expect_compatible<decltype(DriverApi::stream_is_capturing), decltype(cuStreamIsCapturing)>();
  expect_compatible<decltype(DriverApi::stream_create), decltype(cuStreamCreate)>();
  expect_compatible<decltype(DriverApi::stream_destroy), decltype(cuStreamDestroy)>();
  expect_compatible<decltype(DriverApi::stream_synchronize), decltype(cuStreamSynchronize)>();
  expect_compatible<decltype(DriverApi::event_create), decltype(cuEventCreate)>();
  expect_compatible<decltype(DriverApi::event_destroy), decltype(cuEventDestroy)>();
  expect_compatible<decltype(DriverApi::event_record), decltype(cuEventRecord)>();
  expect_compatible<decltype(DriverApi::event_synchronize), decltype(cuEventSynchronize)>();
  expect_compatible<decltype(DriverApi::event_elapsed_ms), decltype(cuEventElapsedTime)>();
}

template <typename Ours, typename Theirs>
void expect_value(Ours ours, Theirs theirs) {
  EXPECT_EQ(static_cast<int>(ours), static_cast<int>(theirs));
}

TEST(DriverHeader, EnumeratorsHaveTheSameValues) {
  expect_value(DriverResult::success, CUDA_SUCCESS);
  expect_value(DriverResult::invalid_value, CUDA_ERROR_INVALID_VALUE);
  expect_value(DriverResult::out_of_memory, CUDA_ERROR_OUT_OF_MEMORY);
  expect_value(DriverResult::no_device, CUDA_ERROR_NO_DEVICE);
  expect_value(DriverResult::invalid_image, CUDA_ERROR_INVALID_IMAGE);
  expect_value(DriverResult::invalid_context, CUDA_ERROR_INVALID_CONTEXT);
  expect_value(DriverResult::no_binary_for_gpu, CUDA_ERROR_NO_BINARY_FOR_GPU);
  expect_value(DriverResult::unsupported_ptx_version, CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
  expect_value(DriverResult::not_found, CUDA_ERROR_NOT_FOUND);

  expect_value(DeviceAttribute::warp_size, CU_DEVICE_ATTRIBUTE_WARP_SIZE);
  expect_value(DeviceAttribute::clock_rate_khz, CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
  expect_value(DeviceAttribute::multiprocessor_count, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  expect_value(DeviceAttribute::memory_clock_rate_khz, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
  expect_value(DeviceAttribute::memory_bus_width_bits, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
  expect_value(DeviceAttribute::l2_cache_size_bytes, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
  expect_value(DeviceAttribute::compute_capability_major,
               CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  expect_value(DeviceAttribute::compute_capability_minor,
               CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  expect_value(DeviceAttribute::shared_memory_per_multiprocessor_bytes,
               CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
  expect_value(DeviceAttribute::registers_per_multiprocessor,
               CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR);
  expect_value(DeviceAttribute::shared_memory_per_block_optin_bytes,
               CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);

  expect_value(FunctionAttribute::max_threads_per_block, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  expect_value(FunctionAttribute::static_shared_bytes, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
  expect_value(FunctionAttribute::local_bytes, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
  expect_value(FunctionAttribute::register_count, CU_FUNC_ATTRIBUTE_NUM_REGS);
  expect_value(FunctionAttribute::max_dynamic_shared_bytes,
               CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);

  expect_value(CaptureStatus::none, CU_STREAM_CAPTURE_STATUS_NONE);
  expect_value(CaptureStatus::active, CU_STREAM_CAPTURE_STATUS_ACTIVE);
  expect_value(CaptureStatus::invalidated, CU_STREAM_CAPTURE_STATUS_INVALIDATED);

  expect_value(TensorMapDataType::f16, CU_TENSOR_MAP_DATA_TYPE_FLOAT16);
  expect_value(TensorMapDataType::f32, CU_TENSOR_MAP_DATA_TYPE_FLOAT32);
  expect_value(TensorMapDataType::bf16, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16);
  expect_value(TensorMapInterleave::none, CU_TENSOR_MAP_INTERLEAVE_NONE);
  expect_value(TensorMapSwizzle::bytes_32, CU_TENSOR_MAP_SWIZZLE_32B);
  expect_value(TensorMapSwizzle::bytes_64, CU_TENSOR_MAP_SWIZZLE_64B);
  expect_value(TensorMapSwizzle::bytes_128, CU_TENSOR_MAP_SWIZZLE_128B);
  expect_value(TensorMapPromotion::l2_64_bytes, CU_TENSOR_MAP_L2_PROMOTION_L2_64B);
  expect_value(TensorMapPromotion::l2_128_bytes, CU_TENSOR_MAP_L2_PROMOTION_L2_128B);
  expect_value(TensorMapPromotion::l2_256_bytes, CU_TENSOR_MAP_L2_PROMOTION_L2_256B);
  expect_value(TensorMapFill::zeros, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}

TEST(DriverHeader, LaunchesAreDescribedAlike) {
  expect_value(LaunchAttributeId::programmatic_stream_serialization,
               CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION);
  static_assert(sizeof(LaunchAttribute) == sizeof(CUlaunchAttribute));
  static_assert(offsetof(LaunchAttribute, allowed) == offsetof(CUlaunchAttribute, value));
  static_assert(sizeof(LaunchConfig) == sizeof(CUlaunchConfig));
  static_assert(offsetof(LaunchConfig, block) == offsetof(CUlaunchConfig, blockDimX));
  static_assert(offsetof(LaunchConfig, dynamic_shared_bytes) ==
                offsetof(CUlaunchConfig, sharedMemBytes));
  static_assert(offsetof(LaunchConfig, stream) == offsetof(CUlaunchConfig, hStream));
  static_assert(offsetof(LaunchConfig, attributes) == offsetof(CUlaunchConfig, attrs));
  static_assert(offsetof(LaunchConfig, attribute_count) == offsetof(CUlaunchConfig, numAttrs));
}

TEST(DriverHeader, TensorMapIsAsLargeAndAlignedAsEncodingRequires) {
  EXPECT_EQ(sizeof(TensorMap), sizeof(CUtensorMap));
  // Encoding requires 64 bytes in every version; the type's own alignment became 128 in CUDA 13.
  EXPECT_EQ(alignof(CUtensorMap) % alignof(TensorMap), 0u);
}

}  // namespace
}  // namespace tilewright::cuda

#else

TEST(DriverHeader, ComparedWhereThereIsOne) {
  GTEST_SKIP() << "no cuda.h on this machine to compare with";
}

#endif
