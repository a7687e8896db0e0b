// src/backend/cuda/driver.cpp: opens the CUDA driver at run time and turns its results into Status.
#include "backend/cuda/driver.h"

#include <dlfcn.h>

#include <type_traits>

namespace tilewright::cuda {
namespace {

ResolveSymbol open_resolver(const std::vector<std::string>& names, std::string& tried) {
  for (const std::string& library_name : names) {
    void* library = dlopen(library_name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      const char* reason = dlerror();
      tried += (tried.empty() ? "" : "; ") + std::string(reason ? reason : library_name.c_str());
      continue;
    }
    // Plain dlsym of an entry point finds its oldest version, so dlsym is used for the resolver
    // alone.
    if (void* resolver = dlsym(library, "cuGetProcAddress_v2")) {
      return reinterpret_cast<ResolveSymbol>(resolver);  // The driver is never closed.
    }
    dlclose(library);
    tried += (tried.empty() ? "" : "; ") + library_name +
             " has no cuGetProcAddress_v2, so it is older than CUDA 12.0";
  }
  return nullptr;
}

StatusCode code_of(DriverResult result) {
  switch (result) {
    case DriverResult::success:
      return StatusCode::ok;
    case DriverResult::out_of_memory:
      return StatusCode::out_of_memory;
    case DriverResult::no_device:
    case DriverResult::invalid_context:
    case DriverResult::invalid_image:
    case DriverResult::no_binary_for_gpu:
    case DriverResult::unsupported_ptx_version:
    case DriverResult::not_found:
      return StatusCode::unavailable;
    case DriverResult::invalid_value:
      break;
  }
  return StatusCode::internal;
}

const std::vector<std::string>& default_library_names() {
  static const std::vector<std::string> names{"libcuda.so.1", "libcuda.so"};
  return names;
}

}  // namespace

std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

Status check(const DriverApi& api, DriverResult result, std::string_view doing) {
  if (result == DriverResult::success) return {};
  const char* error_name = nullptr;
  const char* error_text = nullptr;
  if (api.get_error_name) (void)api.get_error_name(result, &error_name);
  if (api.get_error_string) (void)api.get_error_string(result, &error_text);
  std::string message = "the CUDA driver failed while " + std::string(doing) + ": " +
                        (error_name ? error_name : "error") + " (" +
                        std::to_string(static_cast<int>(result)) + ")";
  if (error_text) message += std::string(", ") + error_text;
  return {code_of(result), std::move(message)};
}

Result<DriverApi> resolve_driver(ResolveSymbol resolve) {
  DriverApi api{};
  std::string missing;
  const auto bind = [&](const char* symbol, auto& slot) {
    void* address = nullptr;
    int symbol_status = 0;
    const DriverResult result = resolve(symbol, &address, kInterfaceVersion, 0, &symbol_status);
    if (result != DriverResult::success) address = nullptr;
    if (address == nullptr && missing.empty()) missing = symbol;
    slot = reinterpret_cast<std::remove_reference_t<decltype(slot)>>(address);
  };
  bind("cuInit", api.init);
  bind("cuDriverGetVersion", api.driver_get_version);
  bind("cuGetErrorName", api.get_error_name);
  bind("cuGetErrorString", api.get_error_string);
  bind("cuDeviceGetCount", api.device_get_count);
  bind("cuDeviceGet", api.device_get);
  bind("cuDeviceGetName", api.device_get_name);
  bind("cuDeviceGetAttribute", api.device_get_attribute);
  bind("cuDeviceTotalMem", api.device_total_memory);
  bind("cuDevicePrimaryCtxRetain", api.primary_context_retain);
  bind("cuDevicePrimaryCtxRelease", api.primary_context_release);
  bind("cuCtxGetCurrent", api.context_get_current);
  bind("cuCtxSetCurrent", api.context_set_current);
  bind("cuCtxGetDevice", api.context_get_device);
  bind("cuCtxGetId", api.context_get_id);
  bind("cuLibraryLoadData", api.library_load_data);
  bind("cuLibraryUnload", api.library_unload);
  bind("cuLibraryGetKernel", api.library_get_kernel);
  bind("cuKernelGetFunction", api.kernel_get_function);
  bind("cuFuncGetAttribute", api.function_get_attribute);
  bind("cuFuncSetAttribute", api.function_set_attribute);
  bind("cuLaunchKernelEx", api.launch_kernel);
  bind("cuTensorMapEncodeTiled", api.tensor_map_encode_tiled);
  bind("cuMemAlloc", api.memory_allocate);
  bind("cuMemFree", api.memory_free);
  bind("cuMemsetD8Async", api.memory_set_async);
  bind("cuMemcpyHtoDAsync", api.copy_to_device_async);
  bind("cuMemcpyDtoHAsync", api.copy_to_host_async);
  bind("cuStreamIsCapturing", api.stream_is_capturing);
  bind("cuStreamCreate", api.stream_create);
  bind("cuStreamDestroy", api.stream_destroy);
  bind("cuStreamSynchronize", api.stream_synchronize);
  bind("cuEventCreate", api.event_create);
  bind("cuEventDestroy", api.event_destroy);
  bind("cuEventRecord", api.event_record);
  bind("cuEventSynchronize", api.event_synchronize);
  bind("cuEventElapsedTime", api.event_elapsed_ms);
  if (!missing.empty()) {
    return Status(StatusCode::unavailable, "the CUDA driver has no entry point '" + missing +
                                               "' of CUDA " + version_text(kInterfaceVersion) +
                                               "; update the NVIDIA driver");
  }
  return api;
}

Status initialise_driver(const DriverApi& api) {
  if (Status status = check(api, api.init(0), "starting (cuInit)"); !status) {
    return {StatusCode::unavailable, status.message()};
  }
  int version = 0;
  if (Status status = check(api, api.driver_get_version(&version), "reading its version");
      !status) {
    return {StatusCode::unavailable, status.message()};
  }
  if (version < kInterfaceVersion) {
    return {StatusCode::unavailable, "the CUDA driver supports CUDA " + version_text(version) +
                                         "; Tilewright needs " + version_text(kInterfaceVersion) +
                                         " or newer"};
  }
  return {};
}

Result<DriverApi> open_driver(const std::vector<std::string>& library_names) {
  std::string tried;
  const ResolveSymbol resolve = open_resolver(library_names, tried);
  if (resolve == nullptr) {
    return Status(
        StatusCode::unavailable,
        "no usable CUDA driver: " + tried + "; install an NVIDIA driver, or use the device 'cpu'");
  }
  Result<DriverApi> api = resolve_driver(resolve);
  if (!api) return api;
  if (Status status = initialise_driver(*api); !status) return status;
  return api;
}

const Result<DriverApi>& driver() {
  static const Result<DriverApi> opened = open_driver(default_library_names());
  return opened;
}

void* driver_symbol(const char* name, int version) {
  if (!driver()) return nullptr;
  std::string tried;
  const ResolveSymbol resolve = open_resolver(default_library_names(), tried);
  void* address = nullptr;
  int symbol_status = 0;
  if (resolve == nullptr) return nullptr;
  const DriverResult result = resolve(name, &address, version, 0, &symbol_status);
  return result == DriverResult::success ? address : nullptr;
}

}  // namespace tilewright::cuda
