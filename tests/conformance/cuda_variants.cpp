// tests/conformance/cuda_variants.cpp: the CUDA backend: TMA and plain copies, chosen and forced
// tiles, splits.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "backend/cuda/device_session.h"
#include "backend/cuda/nvrtc.h"
#include "conformance/variant.h"
#include "plan/hopper_forward.h"
#include "reference/problem_data.h"
#include "tilewright/machine.h"
#include "tilewright/plan.h"
#include "tilewright/run.h"

namespace tilewright::conformance {
namespace {

constexpr std::size_t kAlignment = 256;
constexpr std::size_t kGuard = 4096;

std::uintptr_t number(const void* address) {
  return reinterpret_cast<std::uintptr_t>(address);
}

// Buffers beyond this are sparse on the host: only what was ever written travels.
constexpr std::size_t kSparseBytes = std::size_t{1} << 28;

/// Held by calls that need much of the GPU's memory, so that parts of the suite may run at once.
class LargeCallLock {
 public:
  explicit LargeCallLock(const Call& call) {
    std::size_t bytes = 0;
    for (const HostBuffer& buffer : call.buffers) bytes += buffer.bytes;
    if (bytes < kSparseBytes) return;
    file_ = open("/tmp/tilewright-large-call.lock", O_CREAT | O_RDWR | O_CLOEXEC, 0666);
    if (file_ >= 0) flock(file_, LOCK_EX);
  }
  LargeCallLock(const LargeCallLock&) = delete;
  ~LargeCallLock() {
    if (file_ >= 0) close(file_);
  }

 private:
  int file_ = -1;
};

/// Calls visit(offset, bytes) for the parts of a buffer that take up host memory: all of a small
/// one.
template <typename Visit>
Status for_each_resident_part(const HostBuffer& buffer, Visit&& visit) {
  if (buffer.bytes < kSparseBytes) return visit(std::size_t{0}, buffer.bytes);
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t pages = (buffer.bytes + page - 1) / page;
  std::vector<unsigned char> resident(pages);
  if (mincore(buffer.data, buffer.bytes, resident.data()) != 0) {
    return {StatusCode::internal, "mincore refused a sparse buffer"};
  }
  for (std::size_t at = 0; at < pages; ++at) {
    if ((resident[at] & 1) == 0) continue;
    const std::size_t first = at;
    while (at < pages && (resident[at] & 1) != 0) ++at;
    const std::size_t end = std::min(at * page, buffer.bytes);
    Status status = visit(first * page, end - first * page);
    if (!status.ok()) return status;
  }
  return {};
}

/// Device copies of a call's buffers, whole, and the tensors' addresses in them.
class DeviceCall {
 public:
  explicit DeviceCall(cuda::DeviceSession& session) : session_(session) {}

  /// With `aligned`, each buffer is laid so that the tensor in it starts at a multiple of
  /// kAlignment; else so that it is exactly as misaligned as on the host.
  Status copy_in(const Call& call, bool aligned) {
    tensors = call.tensors;
    for (const HostBuffer& buffer : call.buffers) {
      Result<void*> memory = session_.allocate(buffer.bytes + 2 * kAlignment);
      if (!memory.ok()) return memory.status();
      const std::uintptr_t first = first_tensor(call, buffer);
      const std::uintptr_t place = aligned ? kAlignment - first % kAlignment : 0;
      char* device = static_cast<char*>(*memory) + (place + number(buffer.data)) % kAlignment;
      Status status = for_each_resident_part(buffer, [&](std::size_t at, std::size_t bytes) {
        return session_.copy_to_device(device + at, static_cast<char*>(buffer.data) + at, bytes);
      });
      if (!status.ok()) return status;
      copies_.push_back({buffer, device});
    }
    tensors.q = moved(call.tensors.q);
    tensors.k = moved(call.tensors.k);
    tensors.v = moved(call.tensors.v);
    tensors.o = moved(call.tensors.o);
    tensors.lse = moved(call.tensors.lse);
    tensors.q_lengths = moved(call.tensors.q_lengths);
    tensors.kv_lengths = moved(call.tensors.kv_lengths);
    tensors.alibi_slopes = moved(call.tensors.alibi_slopes);
    tensors.sinks = moved(call.tensors.sinks);
    tensors.bias = moved(call.tensors.bias);
    return {};
  }

  Status copy_out() {
    for (const Copy& copy : copies_) {
      if (!copy.host.output) continue;
      Status status = for_each_resident_part(copy.host, [&](std::size_t at, std::size_t bytes) {
        return session_.copy_to_host(static_cast<char*>(copy.host.data) + at, copy.device + at,
                                     bytes);
      });
      if (!status.ok()) return status;
    }
    return session_.synchronize();
  }

  AttentionTensors tensors;

 private:
  struct Copy {
    HostBuffer host;
    char* device;
  };

  static std::uintptr_t first_tensor(const Call& call, const HostBuffer& buffer) {
    const AttentionTensors& t = call.tensors;
    for (const void* address : {t.q, t.k, t.v, static_cast<const void*>(t.o)}) {
      if (number(address) - number(buffer.data) < buffer.bytes) return number(address);
    }
    return number(buffer.data);
  }

  template <typename T>
  T* moved(T* host) const {
    for (const Copy& copy : copies_) {
      const std::uintptr_t offset = number(host) - number(copy.host.data);
      if (host != nullptr && offset < copy.host.bytes)
        return reinterpret_cast<T*>(copy.device + offset);
    }
    return nullptr;
  }

  cuda::DeviceSession& session_;
  std::vector<Copy> copies_;
};

struct CudaSettings {
  std::string name;
  bool aligned = true;  ///< promises what TMA needs
  PlanOptions options;
  bool long_tile = false;  ///< the tile that the planner takes for long sequences
};

Tile tile_of_long_sequences(const AttentionProblem& problem) {
  const schedule::HopperForwardTile tile =
      schedule::preferred_tile(hopper_specialisation(problem, ForwardPlan{}), 1 << 20);
  return {tile.q_rows, tile.kv_rows};
}

class CudaVariant final : public Variant {
 public:
  explicit CudaVariant(CudaSettings settings) : settings_(std::move(settings)) {}

  std::string name() const override { return settings_.name; }

  std::optional<std::string> refuses(const AttentionSpec& spec) const override {
    if (spec.dtype == DType::f32) return "dtype";
    if (spec.bias.kind != BiasKind::none) return "bias";
    return std::nullopt;
  }

  Result<std::string> run(const Call& call, const RunSettings& settings) const override {
    const LargeCallLock lock(call);
    Result<cuda::DeviceSession> session = cuda::DeviceSession::open();
    if (!session.ok()) return session.status();
    static const Result<Machine> machine = this_gpu();
    if (!machine.ok()) return machine.status();

    AttentionSpec spec = call.problem->spec();
    spec.q_lengths.space = spec.kv_lengths.space = MemorySpace::device;
    if (settings_.aligned) {
      spec.q.alignment_bytes = spec.k.alignment_bytes = spec.v.alignment_bytes = 16;
    }
    const Result<AttentionProblem> problem = AttentionProblem::create(spec);
    if (!problem.ok()) return problem.status();
    PlanOptions options = settings_.options;
    options.batch_invariant = settings.batch_invariant;
    if (settings_.long_tile && !refuses(spec)) options.tile = tile_of_long_sequences(*problem);
    const Result<Plan> chosen = plan(*problem, *machine, options);
    if (!chosen.ok()) return chosen.status();

    DeviceCall device(*session);
    Status status = device.copy_in(call, settings_.aligned);
    if (status.ok()) status = run_guarded(*session, *chosen, device.tensors);
    if (status.ok()) status = device.copy_out();
    if (!status.ok()) return status;
    return to_text(*chosen);
  }

 private:
  // A workspace of just the size asked for, poisoned, between guards; its control block must be
  // left zero.
  static Status run_guarded(cuda::DeviceSession& session, const Plan& plan,
                            const AttentionTensors& tensors) {
    std::vector<char> poison(workspace_bytes(plan) + 2 * kGuard);
    reference::poison(poison.data(), poison.size());
    Result<void*> memory = session.allocate(poison.size());
    if (!memory.ok()) return memory.status();
    Status status = session.copy_to_device(*memory, poison.data(), poison.size());
    RunOptions options;
    options.stream = session.stream();
    options.workspace = {static_cast<char*>(*memory) + kGuard, workspace_bytes(plan)};
    if (status.ok()) status = prepare(plan);
    if (status.ok()) status = init_workspace(plan, options.workspace, options.stream);
    if (status.ok()) status = tilewright::run(plan, tensors, options);
    std::vector<char> after(poison.size());
    if (status.ok()) status = session.copy_to_host(after.data(), *memory, after.size());
    if (!status.ok()) return status;
    if (std::memcmp(after.data(), poison.data(), kGuard) != 0 ||
        std::memcmp(after.data() + after.size() - kGuard, poison.data() + after.size() - kGuard,
                    kGuard) != 0) {
      return {StatusCode::internal, "wrote beyond its workspace"};
    }
    for (std::size_t i = 0; i < 8; ++i) {
      if (after[kGuard + i] != 0)
        return {StatusCode::internal, "left its control block other than zero"};
    }
    return {};
  }

  CudaSettings settings_;
};

std::vector<std::unique_ptr<Variant>> cuda_variants() {
  std::vector<std::unique_ptr<Variant>> list;
  const auto add = [&](CudaSettings settings) {
    list.push_back(std::make_unique<CudaVariant>(std::move(settings)));
  };
  add({"tma", true, {}});
  add({"copies", false, {}});
  add({"tma, tile of long sequences", true, {}, true});
  // Merged by a warp a row, and by several.
  for (const std::int64_t splits : {3, 11}) {
    PlanOptions split;
    split.kv_splits = splits;
    add({"tma, " + std::to_string(splits) + " splits", true, split});
  }
  // Tiles that are not in the pack need the compiler.
  if (cuda::nvrtc().ok()) {
    PlanOptions small;
    small.tile = Tile{128, 64};
    add({"tma tile 128x64", true, small});
  }
  return list;
}

}  // namespace

const std::vector<std::unique_ptr<Variant>>& variants() {
  static const auto list = cuda_variants();
  return list;
}

DType usual_dtype() {
  return DType::bf16;
}

}  // namespace tilewright::conformance
