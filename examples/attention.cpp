// examples/attention.cpp: the whole flow from C++: describe, plan, run.
#include <tilewright/tilewright.h>

#include <cstdio>
#include <vector>

int main() {
  using namespace tilewright;
  AttentionSpec spec;
  spec.heads = spec.kv_heads = 8;
  spec.q_lengths.max_tokens = spec.kv_lengths.max_tokens = 1024;
  spec.qk_dim = 64;
  spec.mask.causal = true;
  const Result<AttentionProblem> problem = AttentionProblem::create(spec);
  if (!problem) return std::fprintf(stderr, "%s\n", problem.status().message().c_str()), 1;
  const Result<Plan> chosen = plan(*problem, this_cpu());
  if (!chosen) return std::fprintf(stderr, "%s\n", chosen.status().message().c_str()), 1;
  std::printf("%s\n", to_text(*chosen).c_str());

  const std::size_t elements = 1024 * 8 * 64;  // [batch 1, tokens, heads, dim]
  std::vector<float> q(elements, 0.5f), k(elements, 0.25f), v(elements, 1.0f), o(elements);
  const AttentionTensors tensors{.q = q.data(), .k = k.data(), .v = v.data(), .o = o.data()};
  const Status status = run(*chosen, tensors);
  if (!status) return std::fprintf(stderr, "%s\n", status.message().c_str()), 1;
  std::printf("o[0] = %g (every v is 1, so every output is)\n", static_cast<double>(o[0]));
  return o[0] > 0.999f && o[0] < 1.001f ? 0 : 1;
}
