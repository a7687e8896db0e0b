// src/api/run.cpp: run(): checks one call's addresses and hands it to the backend of its plan.
#include "tilewright/run.h"

#include <fmt/format.h>

#include <exception>
#include <new>
#include <string_view>

#include "backend/cpu/cpu_backend.h"
#include "backend/cuda/cuda_backend.h"

namespace tilewright {
namespace {

Status invalid(std::string message) {
  return {StatusCode::invalid_argument, std::move(message)};
}

bool empty(const AttentionSpec& spec, const Lengths& lengths) {
  if (spec.batch == 0) return true;
  return lengths.kind == LengthKind::cumulative ? lengths.total_tokens == 0
                                                : lengths.max_tokens == 0;
}

Status check_address(std::string_view name, const void* address, std::int64_t alignment_bytes,
                     bool needed) {
  if (address == nullptr) {
    if (!needed) return {};
    return invalid(fmt::format("{} is null; accepted: the address of its first element", name));
  }
  if (reinterpret_cast<std::uintptr_t>(address) % static_cast<std::uintptr_t>(alignment_bytes) !=
      0) {
    return invalid(
        fmt::format("{} is at {}; accepted: a multiple of {} bytes, as the problem's "
                    "alignment_bytes promises",
                    name, address, alignment_bytes));
  }
  return {};
}

Status check_tensors(const AttentionSpec& spec, const AttentionTensors& tensors) {
  const bool no_q = empty(spec, spec.q_lengths);
  const bool no_kv = empty(spec, spec.kv_lengths) || no_q;
  struct Check {
    const char* name;
    const void* address;
    std::int64_t alignment_bytes;
    bool needed;
  };
  const auto bias_alignment = spec.bias.kind == BiasKind::additive
                                  ? static_cast<std::int64_t>(size_bytes(spec.bias.dtype))
                                  : 1;
  for (const Check& check :
       {Check{"q", tensors.q, spec.q.alignment_bytes, !no_q},
        Check{"k", tensors.k, spec.k.alignment_bytes, !no_kv},
        Check{"v", tensors.v, spec.v.alignment_bytes, !no_kv},
        Check{"o", tensors.o, spec.o.alignment_bytes, !no_q}, Check{"lse", tensors.lse, 4, false},
        Check{"q_lengths", tensors.q_lengths, 4,
              spec.q_lengths.kind != LengthKind::fixed && spec.batch > 0},
        Check{"kv_lengths", tensors.kv_lengths, 4,
              spec.kv_lengths.kind != LengthKind::fixed && spec.batch > 0},
        Check{"alibi_slopes", tensors.alibi_slopes, 4, spec.alibi != PerHead::none},
        Check{"sinks", tensors.sinks, 4, spec.sinks != PerHead::none},
        Check{"bias", tensors.bias, bias_alignment, spec.bias.kind != BiasKind::none && !no_kv}}) {
    Status status = check_address(check.name, check.address, check.alignment_bytes, check.needed);
    if (!status.ok()) return status;
  }
  return {};
}

Status check_workspace(const Plan& plan, const Workspace& workspace) {
  if (workspace.data == nullptr) return {};
  if (workspace.bytes < workspace_bytes(plan)) {
    return invalid(fmt::format("workspace.bytes is {}; accepted: {} or more", workspace.bytes,
                               workspace_bytes(plan)));
  }
  return check_address("workspace.data", workspace.data, 64, true);
}

Status dispatch(const Plan& plan, const AttentionTensors& tensors, const RunOptions& options) {
  switch (plan.family) {
    case KernelFamily::cpu_forward:
      return cpu::run_forward(plan, tensors, options);
    case KernelFamily::hopper_forward:
      return cuda::run_forward(plan, tensors, options);
    case KernelFamily::modelled:
      break;
  }
  return {StatusCode::unsupported,
          fmt::format("plan.family is {} (machine {}); accepted: cpu_forward, "
                      "hopper_forward",
                      name(plan.family), plan.machine_id)};
}

}  // namespace

std::size_t workspace_bytes(const Plan& plan) noexcept {
  return static_cast<std::size_t>(plan.workspace_bytes);
}

Status run(const Plan& plan, const AttentionTensors& tensors, const RunOptions& options) {
  Status status = check_tensors(plan.problem.spec(), tensors);
  if (status.ok()) status = check_workspace(plan, options.workspace);
  if (!status.ok()) return status;
  // Nothing leaves the library as an exception; an allocation that fails is a status.
  try {
    return dispatch(plan, tensors, options);
  } catch (const std::bad_alloc&) {
    return {StatusCode::out_of_memory,
            fmt::format("the {} bytes of workspace could not be allocated", workspace_bytes(plan))};
  } catch (const std::exception& error) {
    return {StatusCode::internal, error.what()};
  }
}

Status attention(const AttentionSpec& spec, const AttentionTensors& tensors) {
  const Result<AttentionProblem> problem = AttentionProblem::create(spec);
  if (!problem.ok()) return problem.status();
  const Result<Plan> chosen = plan(*problem, this_cpu());
  if (!chosen.ok()) return chosen.status();
  return run(*chosen, tensors);
}

}  // namespace tilewright
