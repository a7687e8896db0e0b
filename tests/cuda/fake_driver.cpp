// tests/cuda/fake_driver.cpp: a CUDA driver without a GPU, that records what it is asked and can be
// told to fail.
#include "tests/cuda/fake_driver.h"

#include <cstdio>
#include <cstring>

namespace tilewright::cuda {
namespace {

using R = DriverResult;

R init(unsigned) {
  return fake_driver().init_result;
}
R driver_get_version(int* version) {
  return *version = fake_driver().version, R::success;
}
R get_error_name(R result, const char** text) {
  return *text = result == R::out_of_memory ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_FAKE",
         R::success;
}
R get_error_string(R, const char** text) {
  return *text = "as the test asked", R::success;
}
R device_get(DeviceOrdinal* device, int ordinal) {
  return *device = ordinal, R::success;
}
R device_get_name(char* text, int capacity, DeviceOrdinal) {
  return std::snprintf(text, capacity, "%s", fake_driver().device_name.c_str()), R::success;
}
R device_get_attribute(int* value, DeviceAttribute attribute, DeviceOrdinal) {
  if (fake_driver().attribute_result != R::success) return fake_driver().attribute_result;
  return *value = fake_driver().attributes[attribute], R::success;
}
R device_total_memory(std::size_t* bytes, DeviceOrdinal) {
  return *bytes = fake_driver().memory_bytes, R::success;
}
R context_get_current(ContextHandle* context) {
  return *context = reinterpret_cast<ContextHandle>(fake_driver().current_context), R::success;
}
R context_get_device(DeviceOrdinal* device) {
  return *device = 0, R::success;
}
R context_get_id(ContextHandle context, unsigned long long* id) {
  return *id = reinterpret_cast<unsigned long long>(context), R::success;
}
R library_load_data(LibraryHandle* library, const void* image, void*, void**, unsigned, void*,
                    void**, unsigned) {
  FakeDriver& fake = fake_driver();
  if (std::memcmp(image, "\177ELF", 4) != 0) return R::invalid_image;
  return *library = reinterpret_cast<LibraryHandle>(static_cast<std::size_t>(++fake.loads)),
         R::success;
}
R library_unload(LibraryHandle) {
  return ++fake_driver().unloads, R::success;
}
R library_get_kernel(KernelHandle* kernel, LibraryHandle library, const char* entry) {
  if (std::strcmp(entry, "absent") == 0) return R::not_found;
  return *kernel = reinterpret_cast<KernelHandle>(library), R::success;
}
R kernel_get_function(FunctionHandle* function, KernelHandle kernel) {
  const auto id = reinterpret_cast<std::size_t>(kernel) * 1000 + fake_driver().current_context;
  return ++fake_driver().functions, *function = reinterpret_cast<FunctionHandle>(id), R::success;
}
R function_set_attribute(FunctionHandle function, FunctionAttribute attribute, int value) {
  const std::lock_guard lock(fake_driver().mutex);
  if (attribute == FunctionAttribute::max_dynamic_shared_bytes) {
    fake_driver().granted_shared_bytes[function] = value;
  }
  return R::success;
}
R launch_kernel(const LaunchConfig* config, FunctionHandle function, void**, void**) {
  const auto& [grid, block, shared, stream, attributes, count] = *config;
  fake_driver().launches.push_back(
      {function,
       {grid[0], grid[1], grid[2]},
       {block[0], block[1], block[2]},
       shared,
       stream,
       count == 1 && attributes->allowed == 1 &&
           attributes->id == LaunchAttributeId::programmatic_stream_serialization});
  return fake_driver().launch_result;
}
R tensor_map_encode_tiled(TensorMap* map, TensorMapDataType, std::uint32_t rank, void* address,
                          const std::uint64_t* dims, const std::uint64_t* strides,
                          const std::uint32_t* box, const std::uint32_t*, TensorMapInterleave,
                          TensorMapSwizzle, TensorMapPromotion, TensorMapFill) {
  // What the driver refuses: misaligned addresses and strides, empty extents, boxes over 256.
  if (rank < 4 || rank > 5 || reinterpret_cast<std::uintptr_t>(address) % 16 != 0)
    return R::invalid_value;
  for (std::uint32_t axis = 0; axis < rank; ++axis) {
    if (dims[axis] == 0 || dims[axis] > (std::uint64_t{1} << 32) || box[axis] == 0 ||
        box[axis] > 256) {
      return R::invalid_value;
    }
    if (axis > 0 &&
        (strides[axis - 1] % 16 != 0 || strides[axis - 1] >= (std::uint64_t{1} << 40))) {
      return R::invalid_value;
    }
  }
  for (std::uint32_t axis = 0; axis < rank; ++axis) {
    map->opaque[axis] = dims[axis];
    if (axis > 0) map->opaque[4 + axis] = strides[axis - 1];
    map->opaque[10 + axis] = box[axis];
  }
  return R::success;
}
R memory_set_async(DevicePointer address, unsigned char value, std::size_t bytes, StreamHandle) {
  return std::memset(reinterpret_cast<void*>(address), value, bytes), R::success;
}
R stream_is_capturing(StreamHandle, CaptureStatus* status) {
  return *status = fake_driver().capture, R::success;
}

}  // namespace

void FakeDriver::reset() {
  version = 13000;
  current_context = 1;
  init_result = launch_result = attribute_result = DriverResult::success;
  capture = CaptureStatus::none;
  attributes.clear();
  device_name = "NVIDIA H200";
  memory_bytes = 0;
  loads = unloads = functions = 0;
  granted_shared_bytes.clear();
  launches.clear();
  missing_symbol.clear();
}

FakeDriver& fake_driver() {
  static FakeDriver fake;
  return fake;
}

DriverApi fake_driver_api() {
  DriverApi api{};
  api.init = init;
  api.driver_get_version = driver_get_version;
  api.get_error_name = get_error_name;
  api.get_error_string = get_error_string;
  api.device_get = device_get;
  api.device_get_name = device_get_name;
  api.device_get_attribute = device_get_attribute;
  api.device_total_memory = device_total_memory;
  api.context_get_current = context_get_current;
  api.context_get_device = context_get_device;
  api.context_get_id = context_get_id;
  api.library_load_data = library_load_data;
  api.library_unload = library_unload;
  api.library_get_kernel = library_get_kernel;
  api.kernel_get_function = kernel_get_function;
  api.function_set_attribute = function_set_attribute;
  api.launch_kernel = launch_kernel;
  api.tensor_map_encode_tiled = tensor_map_encode_tiled;
  api.memory_set_async = memory_set_async;
  api.stream_is_capturing = stream_is_capturing;
  return api;
}

DriverResult resolve_fake(const char* symbol, void** address, int, std::uint64_t, int*) {
  if (missing_symbol == symbol) return DriverResult::not_found;
  // Tests of the resolver call nothing but these; the others only have to be there.
  *address = reinterpret_cast<void*>(&library_unload);
  if (std::strcmp(symbol, "cuInit") == 0) *address = reinterpret_cast<void*>(&init);
  if (std::strcmp(symbol, "cuDriverGetVersion") == 0)
    *address = reinterpret_cast<void*>(&driver_get_version);
  if (std::strcmp(symbol, "cuGetErrorName") == 0)
    *address = reinterpret_cast<void*>(&get_error_name);
  if (std::strcmp(symbol, "cuGetErrorString") == 0)
    *address = reinterpret_cast<void*>(&get_error_string);
  return DriverResult::success;
}

}  // namespace tilewright::cuda
