// examples/learn/05_planned.cpp: the same through the library, which picks the tile for this
// machine.
#include <tilewright/tilewright.h>

#include "standard_attention.h"

int main() {
  using namespace tilewright;
  const int tokens = 700, dim = 64;
  const Matrix q = random_matrix(tokens, dim, 1), k = random_matrix(tokens, dim, 2),
               v = random_matrix(tokens, dim, 3);
  Claims claims;

  // What to compute: one head, causal.
  AttentionSpec spec;
  spec.q_lengths.max_tokens = spec.kv_lengths.max_tokens = tokens;
  spec.qk_dim = dim;
  spec.mask.causal = true;
  const Result<AttentionProblem> problem = AttentionProblem::create(spec);
  if (!problem) return std::fprintf(stderr, "%s\n", problem.status().message().c_str()), 1;

  // How: the tile that is fastest in this machine's memories, with its reasons.
  const Result<Plan> chosen = plan(*problem, this_cpu());
  if (!chosen) return std::fprintf(stderr, "%s\n", chosen.status().message().c_str()), 1;
  std::printf("%s\n\n", to_text(*chosen).c_str());

  // Run it. Nothing of size tokens x tokens exists.
  Matrix o(tokens, dim);
  const AttentionTensors tensors{
      .q = q.values.data(), .k = k.values.data(), .v = v.values.data(), .o = o.values.data()};
  const Status status = run(*chosen, tensors);
  claims.check(status.ok(), "the plan ran");
  claims.check(largest_difference(o, standard_attention(q, k, v, true)) <= rounding(tokens, v),
               "the result is that of standard attention");

  // A tile that no machine could hold is refused, with the one that fits.
  PlanOptions options;
  options.tile = Tile{.q_rows = 100000, .kv_rows = 100000};
  const Result<Plan> refused = plan(*problem, this_cpu(), options);
  std::printf("\nA tile of 100000 x 100000:\n  %s\n", refused.status().message().c_str());
  claims.check(refused.status().code() == StatusCode::does_not_fit, "it is refused");
  return claims.failed();
}
