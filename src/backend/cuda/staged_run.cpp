// src/backend/cuda/staged_run.cpp: runs a GPU plan on arrays in host memory, for tools and tests.
#include "backend/cuda/staged_run.h"

#include <algorithm>

#include "backend/cuda/cuda_backend.h"
#include "backend/cuda/device_session.h"
#include "plan/copy_engine.h"

namespace tilewright::cuda {
namespace {

// Every operand's first element lies at a multiple of this on the device, whatever the problem
// promises.
constexpr std::int64_t kPlacement = 256;

/// The bytes that an operand reaches, relative to its address: strides may be negative.
struct Reach {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

Reach reach_of(const OperandShape& shape) {
  if (shape.batch == 0 || shape.rows == 0) return {};
  const auto element = static_cast<std::int64_t>(size_bytes(shape.dtype));
  Reach reach{0, 1};
  const auto extend = [&](std::int64_t extent, std::int64_t stride) {
    (stride < 0 ? reach.begin : reach.end) += (extent - 1) * stride;
  };
  extend(shape.dim, shape.strides.dim);
  for (const OuterAxis& axis : outer_axes(shape)) extend(axis.extent, axis.stride);
  return {reach.begin * element, reach.end * element};
}

class Staging {
 public:
  explicit Staging(DeviceSession& session) : session_(session) {}

  /// A device copy of the bytes in reach of `host`; returns the counterpart of `host` itself.
  Result<void*> stage(const void* host, const Reach& reach) {
    if (host == nullptr || reach.end == reach.begin) return nullptr;
    const auto bytes = static_cast<std::size_t>(reach.end - reach.begin);
    const char* source = static_cast<const char*>(host) + reach.begin;
    Result<void*> memory = session_.allocate(bytes + kPlacement);
    if (!memory.ok()) return memory.status();
    const std::int64_t before = (reach.begin % kPlacement + kPlacement) % kPlacement;
    char* target = static_cast<char*>(*memory) + before;
    Status status = session_.copy_to_device(target, source, bytes);
    if (!status.ok()) return status;
    return target - reach.begin;
  }

  template <typename T>
  Status stage_into(T*& device, const void* host, const Reach& reach) {
    Result<void*> staged = stage(host, reach);
    if (!staged.ok()) return staged.status();
    device = static_cast<T*>(*staged);
    return {};
  }

  Status fetch(void* host, const void* device, const Reach& reach) {
    if (host == nullptr || reach.end == reach.begin) return {};
    return session_.copy_to_host(static_cast<char*>(host) + reach.begin,
                                 static_cast<const char*>(device) + reach.begin,
                                 static_cast<std::size_t>(reach.end - reach.begin));
  }

 private:
  DeviceSession& session_;
};

OperandShape o_shape(const AttentionProblem& problem) {
  OperandShape shape = q_shape(problem);
  shape.dtype = problem.o_dtype();
  shape.dim = problem.spec().v_dim;
  shape.strides = problem.o();
  return shape;
}

Reach four_bytes_each(std::int64_t count) {
  return {0, 4 * count};
}

std::int64_t length_count(const AttentionSpec& spec, const Lengths& lengths) {
  if (lengths.kind == LengthKind::fixed) return 0;
  return spec.batch + (lengths.kind == LengthKind::cumulative ? 1 : 0);
}

std::int64_t scalar_count(const AttentionSpec& spec, PerHead kind) {
  if (kind == PerHead::none) return 0;
  return kind == PerHead::per_batch_head ? spec.batch * spec.heads : spec.heads;
}

}  // namespace

AttentionSpec staged_spec(AttentionSpec spec) {
  spec.q_lengths.space = spec.kv_lengths.space = MemorySpace::device;
  for (Operand* operand : {&spec.q, &spec.k, &spec.v}) {
    operand->alignment_bytes = std::max(operand->alignment_bytes, kCopyEngineAlignment);
  }
  return spec;
}

Result<StagedReport> run_staged(const Plan& plan, const AttentionTensors& host, int repeats) {
  Result<DeviceSession> session = DeviceSession::open();
  if (!session.ok()) return session.status();
  const AttentionProblem& problem = plan.problem;
  const AttentionSpec& spec = problem.spec();
  const Reach o_reach = reach_of(o_shape(problem));
  const Reach lse_reach = four_bytes_each(problem.lse_rows());

  Staging staging(*session);
  AttentionTensors device;
  Status status = staging.stage_into(device.q, host.q, reach_of(q_shape(problem)));
  if (status.ok()) status = staging.stage_into(device.k, host.k, reach_of(k_shape(problem)));
  if (status.ok()) status = staging.stage_into(device.v, host.v, reach_of(v_shape(problem)));
  if (status.ok()) status = staging.stage_into(device.o, host.o, o_reach);
  if (status.ok()) status = staging.stage_into(device.lse, host.lse, lse_reach);
  if (status.ok()) {
    status = staging.stage_into(device.q_lengths, host.q_lengths,
                                four_bytes_each(length_count(spec, spec.q_lengths)));
  }
  if (status.ok()) {
    status = staging.stage_into(device.kv_lengths, host.kv_lengths,
                                four_bytes_each(length_count(spec, spec.kv_lengths)));
  }
  if (status.ok()) {
    status = staging.stage_into(device.alibi_slopes, host.alibi_slopes,
                                four_bytes_each(scalar_count(spec, spec.alibi)));
  }
  if (status.ok()) {
    status = staging.stage_into(device.sinks, host.sinks,
                                four_bytes_each(scalar_count(spec, spec.sinks)));
  }
  if (!status.ok()) return status;

  RunOptions options;
  options.stream = session->stream();
  options.workspace.bytes = workspace_bytes(plan);
  Result<void*> workspace = session->allocate(options.workspace.bytes);
  if (!workspace.ok()) return workspace.status();
  options.workspace.data = *workspace;
  status = cuda::prepare(plan);
  if (status.ok()) status = cuda::init_workspace(plan, options.workspace, options.stream);
  StagedReport report;
  for (int run = 0; run < std::max(repeats, 1) && status.ok(); ++run) {
    const Result<float> time = session->time_ms([&] { return run_forward(plan, device, options); });
    status = time.status();
    if (time.ok()) report.seconds.push_back(1e-3 * static_cast<double>(*time));
  }
  if (status.ok()) status = staging.fetch(host.o, device.o, o_reach);
  if (status.ok()) status = staging.fetch(host.lse, device.lse, lse_reach);
  if (!status.ok()) return status;
  report.device_bytes = static_cast<std::int64_t>(session->allocated_bytes());
  return report;
}

}  // namespace tilewright::cuda
