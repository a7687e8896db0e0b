/* examples/attention.c: the whole flow from C: describe, plan, lend a workspace, run, explain. */
#include <stdio.h>
#include <stdlib.h>
#include <tilewright/c/tilewright.h>

static int fail(const char* what) {
  fprintf(stderr, "%s: %s\n", what, tilewright_error_text());
  return EXIT_FAILURE;
}

int main(void) {
  tilewright_attention_spec spec;
  tilewright_attention_spec_init(&spec);
  spec.heads = 8;
  spec.kv_heads = 2; /* four query heads share each key and value head */
  spec.q_lengths.max_tokens = 256;
  spec.kv_lengths.max_tokens = 512;
  spec.qk_dim = 64;
  spec.causal = 1;

  tilewright_plan* plan = NULL;
  if (tilewright_plan_create(&spec, NULL, &plan) != TILEWRIGHT_OK) return fail("plan");
  printf("%s\n", tilewright_plan_text(plan));

  const size_t q_elements = 256 * 8 * 64;
  const size_t kv_elements = 512 * 2 * 64;
  float* q = malloc(q_elements * sizeof *q);
  float* k = malloc(kv_elements * sizeof *k);
  float* v = malloc(kv_elements * sizeof *v);
  float* o = malloc(q_elements * sizeof *o);
  const size_t workspace_bytes = tilewright_plan_workspace_bytes(plan);
  void* workspace =
      workspace_bytes > 0 ? aligned_alloc(64, (workspace_bytes + 63) / 64 * 64) : NULL;
  for (size_t i = 0; i < q_elements; ++i) q[i] = (float)(i % 7) * 0.1f;
  for (size_t i = 0; i < kv_elements; ++i) k[i] = (float)(i % 5) * 0.1f, v[i] = 2.0f;

  tilewright_tensors tensors;
  tilewright_tensors_init(&tensors);
  tensors.q = q;
  tensors.k = k;
  tensors.v = v;
  tensors.o = o;
  tilewright_run_options options;
  tilewright_run_options_init(&options);
  options.workspace = workspace;
  options.workspace_bytes = workspace_bytes;
  if (tilewright_run(plan, &tensors, &options) != TILEWRIGHT_OK) return fail("run");
  printf("o[0] = %g (every v is 2, so every output is)\n", o[0]);
  const int right = o[0] > 1.999f && o[0] < 2.001f;

  /* What a mistake looks like. */
  spec.kv_heads = 3;
  tilewright_plan* refused = NULL;
  const tilewright_status status = tilewright_plan_create(&spec, NULL, &refused);
  printf("kv_heads = 3: %s: %s\n", tilewright_status_text(status), tilewright_error_text());

  tilewright_plan_destroy(plan);
  free(q), free(k), free(v), free(o), free(workspace);
  return right && status == TILEWRIGHT_INVALID_ARGUMENT ? EXIT_SUCCESS : EXIT_FAILURE;
}
