// src/backend/cuda/kernel_cache.cpp: hands out loaded kernels, from memory, the pack, the disk or
// the compiler.
#include "backend/cuda/kernel_cache.h"

#include <fmt/format.h>

#include "backend/cuda/locations.h"

namespace tilewright::cuda {

std::string_view name(KernelOrigin origin) {
  switch (origin) {
    case KernelOrigin::pack:
      return "pack";
    case KernelOrigin::disk:
      return "disk";
    case KernelOrigin::compiled:
      return "compiled";
  }
  return "unknown";
}

Result<unsigned long long> KernelCache::current_context() const {
  ContextHandle context = nullptr;
  Status status = check(parts_.driver, parts_.driver.context_get_current(&context),
                        "reading the current context");
  if (!status.ok()) return status;
  if (context == nullptr) {
    return Status{StatusCode::invalid_argument,
                  "the calling thread has no current CUDA context; accepted: one made current, for "
                  "instance by cudaSetDevice and any CUDA call, or cuCtxSetCurrent"};
  }
  // Identifiers are never reused, unlike addresses.
  unsigned long long id = 0;
  status =
      check(parts_.driver, parts_.driver.context_get_id(context, &id), "identifying the context");
  if (!status.ok()) return status;
  return id;
}

Result<LoadedKernel> KernelCache::get(const KernelSource& source, bool prepared_only) {
  const Result<unsigned long long> context = current_context();
  if (!context.ok()) return context.status();
  Entry* entry = nullptr;
  {
    const std::lock_guard lock(mutex_);
    std::unique_ptr<Entry>& slot = entries_[source.key()];
    if (!slot) slot = std::make_unique<Entry>();
    entry = slot.get();
  }
  const std::lock_guard lock(entry->mutex);
  auto found = entry->function_of_context.find(*context);
  if (found == entry->function_of_context.end()) {
    if (prepared_only) {
      return Status{
          StatusCode::not_prepared,
          fmt::format("kernel {} is not loaded, and the stream is capturing a graph; call "
                      "prepare() before the capture",
                      source.name)};
    }
    if (entry->kernel == nullptr) {
      Status status = load(source, *entry);
      if (!status.ok()) return status;
    }
    const Result<FunctionHandle> function = function_in_context(source, *entry);
    if (!function.ok()) return function.status();
    found = entry->function_of_context.emplace(*context, *function).first;
  }
  return LoadedKernel{found->second, source.dynamic_shared_bytes, source.threads, entry->origin};
}

Status KernelCache::load(const KernelSource& source, Entry& entry) {
  std::string problems;
  const auto note = [&](const Status& status) { problems += "; " + status.message(); };
  if (!parts_.pack.ok()) {
    note(parts_.pack.status());
  } else {
    const Result<std::optional<std::string>> cubin = parts_.pack->load(source.key());
    if (!cubin.ok()) {
      note(cubin.status());
    } else if (*cubin) {
      // A driver older than the pack's compiler refuses its code; another compiler's may load.
      Status status = load_image(source, **cubin, KernelOrigin::pack, entry);
      if (status.ok()) return status;
      note(status);
    }
  }
  const Result<Nvrtc> nvrtc = parts_.nvrtc();
  if (!nvrtc.ok()) {
    return {StatusCode::unavailable,
            fmt::format("kernel {} is not in the pack and cannot be compiled: {}{}", source.name,
                        nvrtc.status().message(), problems)};
  }
  const std::string disk_key =
      fmt::format("{}\n{}\n{}\nnvrtc {}", source.key(), parts_.source_digest, kArchitecture,
                  nvrtc->version.text());
  if (const std::optional<std::string> cubin = parts_.disk.load(disk_key)) {
    Status status = load_image(source, *cubin, KernelOrigin::disk, entry);
    if (status.ok()) return status;
    note(status);
  }
  const Result<CompiledKernel> compiled = compile(*nvrtc, source, parts_.files);
  if (!compiled.ok()) return compiled.status();
  (void)parts_.disk.store(disk_key,
                          compiled->cubin);  // A cache that cannot be written is no fault.
  Status status = load_image(source, compiled->cubin, KernelOrigin::compiled, entry);
  if (!status.ok()) return {status.code(), status.message() + problems};
  return status;
}

Status KernelCache::load_image(const KernelSource& source, const std::string& cubin,
                               KernelOrigin origin, Entry& entry) {
  const DriverApi& api = parts_.driver;
  LibraryHandle library = nullptr;
  Status status = check(
      api, api.library_load_data(&library, cubin.data(), nullptr, nullptr, 0, nullptr, nullptr, 0),
      fmt::format("loading kernel {} ({})", source.name, name(origin)));
  if (!status.ok()) return status;
  KernelHandle kernel = nullptr;
  status =
      check(api, api.library_get_kernel(&kernel, library, source.entry.c_str()),
            fmt::format("finding '{}' in kernel {} ({})", source.entry, source.name, name(origin)));
  if (!status.ok()) {
    (void)api.library_unload(library);
    return status;
  }
  entry.library = library;  // Stays loaded as long as the process.
  entry.kernel = kernel;
  entry.origin = origin;
  return {};
}

Result<FunctionHandle> KernelCache::function_in_context(const KernelSource& source,
                                                        const Entry& entry) const {
  const DriverApi& api = parts_.driver;
  FunctionHandle function = nullptr;
  Status status = check(api, api.kernel_get_function(&function, entry.kernel),
                        fmt::format("loading kernel {} in the current context", source.name));
  if (!status.ok()) return status;
  status = check(api,
                 api.function_set_attribute(function, FunctionAttribute::max_dynamic_shared_bytes,
                                            source.dynamic_shared_bytes),
                 fmt::format("granting kernel {} its {} bytes of shared memory", source.name,
                             source.dynamic_shared_bytes));
  if (!status.ok()) return status;
  return function;
}

KernelCache& kernel_cache(const DriverApi& driver) {
  static KernelCache cache({driver, [] { return nvrtc(); },
                            KernelPack::find(pack_candidates(kPackFileName), embedded_digest()),
                            DiskCache(cache_folder()), embedded_files(),
                            std::string(embedded_digest())});
  return cache;
}

}  // namespace tilewright::cuda
