// examples/gpu.cpp: attention on memory and a stream that an engine owns, without a CUDA header.
//
// On a machine without a GPU it plans for an H200, says what is missing, and stops there.
#include <tilewright/tilewright.h>

#include <cstdio>

namespace {

using namespace tilewright;

/// What an engine does once a shape: problem, plan, and the kernels loaded before anything is
/// captured.
Result<Plan> prepare_layer(std::int64_t tokens, const Machine& machine) {
  AttentionSpec spec;
  spec.dtype = DType::bf16;
  spec.heads = 32;
  spec.kv_heads = 8;
  spec.qk_dim = 128;
  spec.q_lengths.max_tokens = spec.kv_lengths.max_tokens = tokens;
  spec.mask.causal = true;
  // Promises about the addresses that will be given: from 16 bytes on, Hopper's copy engine is
  // used.
  spec.q.alignment_bytes = spec.k.alignment_bytes = spec.v.alignment_bytes = 16;
  const Result<AttentionProblem> problem = AttentionProblem::create(spec);
  if (!problem) return problem.status();
  return plan(*problem, machine);
}

/// What it does in every step: nothing is allocated, the host does not wait, and the call may be
/// captured in a CUDA graph. All addresses are of device memory.
[[maybe_unused]] Status attend(const Plan& layer, const AttentionTensors& tensors,
                               const Workspace& workspace, void* stream) {
  RunOptions options;
  options.workspace = workspace;
  options.stream = stream;
  return run(layer, tensors, options);
}

}  // namespace

int main() {
  const Result<Machine> gpu = this_gpu();
  if (!gpu) std::printf("no GPU here: %s\n\n", gpu.status().message().c_str());
  const Result<Machine> machine = gpu ? gpu : machine_profile("h200");
  const Result<Plan> layer = prepare_layer(8192, *machine);
  if (!layer) return std::fprintf(stderr, "%s\n", layer.status().message().c_str()), 1;
  std::printf("%s\n", to_text(*layer).c_str());
  std::printf("workspace: %zu bytes, zeroed once by init_workspace()\n", workspace_bytes(*layer));
  if (!gpu) return 0;
  // Needs a current context, as any engine has: prepare(*layer), init_workspace(...), then
  // attend(...).
  const Status status = prepare(*layer);
  std::printf("prepare: %s\n", status ? "ok" : status.message().c_str());
  return 0;
}
