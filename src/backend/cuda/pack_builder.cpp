// src/backend/cuda/pack_builder.cpp: compiles and judges the kernels of a pack, and writes it.
#include "backend/cuda/pack_builder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>

namespace tilewright::cuda {
namespace {

// Whether `file` is the pack that compiling these kernels would give.
bool is_current(const std::filesystem::path& file, const PackHeader& header,
                const std::vector<KernelSource>& kernels) {
  const Result<KernelPack> pack = KernelPack::open(file);
  if (!pack.ok() || !(pack->header() == header) || pack->entries().size() != kernels.size())
    return false;
  return std::all_of(kernels.begin(), kernels.end(), [&](const KernelSource& kernel) {
    return pack->contains(kernel.key()) && pack->load(kernel.key()).ok();
  });
}

}  // namespace

std::vector<std::string> plan_faults(const KernelSource& source, const CubinFacts& facts) {
  std::vector<std::string> faults;
  if (facts.static_shared_bytes != 0) {
    faults.push_back(fmt::format("{} bytes of static shared memory beside the planned {}",
                                 facts.static_shared_bytes, source.dynamic_shared_bytes));
  }
  if (source.planned_registers != 0 && facts.register_count != source.planned_registers) {
    faults.push_back(fmt::format("{} registers a thread; planned: {}", facts.register_count,
                                 source.planned_registers));
  }
  if (facts.matrix_instructions < source.planned_matrix_instructions) {
    faults.push_back(fmt::format("{} matrix instructions; planned: {} or more",
                                 facts.matrix_instructions, source.planned_matrix_instructions));
  }
  return faults;
}

Result<PackReport> build_pack(const std::filesystem::path& file, const Nvrtc& nvrtc,
                              const std::vector<KernelSource>& kernels, int jobs) {
  const auto start = std::chrono::steady_clock::now();
  const PackHeader header{std::string(embedded_digest()), std::string(kArchitecture),
                          nvrtc.version.text()};
  PackReport report;
  report.kernels = static_cast<int>(kernels.size());
  if (is_current(file, header, kernels)) {
    report.file_bytes = std::filesystem::file_size(file);
    std::filesystem::last_write_time(file, std::filesystem::file_time_type::clock::now());
    return report;
  }
  std::vector<PackedKernel> packed(kernels.size());
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  std::string failures;
  const auto work = [&] {
    for (std::size_t index = next++; index < kernels.size(); index = next++) {
      const KernelSource& source = kernels[index];
      Result<CompiledKernel> compiled = compile(nvrtc, source, embedded_files());
      const std::lock_guard lock(mutex);
      if (!compiled.ok()) {
        failures += compiled.status().message() + "\n";
        continue;
      }
      std::vector<std::string> faults = performance_faults(*compiled);
      const std::vector<std::string> more = plan_faults(source, compiled->facts);
      faults.insert(faults.end(), more.begin(), more.end());
      if (!faults.empty()) {
        report.faults += fmt::format("kernel {}: {}\n", source.name, fmt::join(faults, "; "));
      }
      report.slowest_kernel_seconds = std::max(report.slowest_kernel_seconds, compiled->seconds);
      packed[index] = {source.key(), std::move(compiled->cubin), compiled->facts};
    }
  };
  std::vector<std::thread> threads;
  // NOLINTNEXTLINE(performance-inefficient-vector-operation)
  for (int job = 0; job < jobs; ++job) threads.emplace_back(work);
  for (std::thread& thread : threads) thread.join();
  if (!failures.empty()) {
    failures.pop_back();
    return Status{StatusCode::internal, failures};
  }

  const Result<std::uint64_t> bytes = write_pack(file, header, packed);
  if (!bytes.ok()) return bytes.status();
  report.file_bytes = *bytes;
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return report;
}

}  // namespace tilewright::cuda
