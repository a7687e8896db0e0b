// src/backend/cuda/kernel_cache.h: hands out loaded kernels, from memory, the pack, the disk or the
// compiler.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "backend/cuda/compiler.h"
#include "backend/cuda/disk_cache.h"
#include "backend/cuda/driver.h"
#include "backend/cuda/kernel_pack.h"

namespace tilewright::cuda {

enum class KernelOrigin { pack, disk, compiled };
std::string_view name(KernelOrigin origin);

/// A kernel ready to be launched in one context.
struct LoadedKernel {
  FunctionHandle function = nullptr;
  int dynamic_shared_bytes = 0;
  int threads = 0;
  KernelOrigin origin = KernelOrigin::pack;
};

/// Looks a kernel up in memory, then the pack, then the disk, then compiles it. Any number of
/// threads may call it; each kernel is fetched once, and different kernels at once.
class KernelCache {
 public:
  struct Parts {
    DriverApi driver{};
    std::function<Result<Nvrtc>()> nvrtc;  ///< called only when neither memory nor pack has it
    Result<KernelPack> pack;
    DiskCache disk;
    std::span<const EmbeddedFile> files;
    std::string source_digest;
  };
  explicit KernelCache(Parts parts) : parts_(std::move(parts)) {}

  /// The kernel, loaded in the current context with its shared memory granted. `prepared_only`
  /// answers not_prepared rather than load or compile anything, as a graph capture needs.
  Result<LoadedKernel> get(const KernelSource& source, bool prepared_only);

  const Result<KernelPack>& pack() const { return parts_.pack; }
  const DiskCache& disk() const { return parts_.disk; }

 private:
  struct Entry {
    std::mutex mutex;
    LibraryHandle library = nullptr;
    KernelHandle kernel = nullptr;
    KernelOrigin origin = KernelOrigin::pack;
    std::map<unsigned long long, FunctionHandle> function_of_context;
  };

  Result<unsigned long long> current_context() const;
  Status load(const KernelSource& source, Entry& entry);
  Status load_image(const KernelSource& source, const std::string& cubin, KernelOrigin origin,
                    Entry& entry);
  Result<FunctionHandle> function_in_context(const KernelSource& source, const Entry& entry) const;

  Parts parts_;
  std::mutex mutex_;
  std::map<std::string, std::unique_ptr<Entry>> entries_;
};

/// The process's cache, on the real driver, compiler, pack and user's folder.
KernelCache& kernel_cache(const DriverApi& driver);

}  // namespace tilewright::cuda
