/* tilewright/c/tilewright.h: the C interface, whose binary layout is stable within a major ABI
 * version.
 *
 *   describe  tilewright_attention_spec    shapes, strides, mask: tilewright/attention.h has every
 * rule plan      tilewright_plan_create       checks the spec and decides how to run it size
 * tilewright_plan_workspace_bytes run       tilewright_run               computes O and LSE explain
 * tilewright_plan_text, tilewright_plan_json, tilewright_error_text
 *
 * Calls that can fail return a tilewright_status; none aborts or throws. Each struct begins with
 * its size, set by its _init function, so that a program and a library of different minor versions
 * work together. All functions may be called from any thread; a plan is immutable and may be run by
 * many threads at once.
 */
#ifndef TILEWRIGHT_C_TILEWRIGHT_H
#define TILEWRIGHT_C_TILEWRIGHT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Grows with every addition; the major part (value / 1000) changes only when a layout breaks. */
#define TILEWRIGHT_ABI_VERSION 1000

typedef enum tilewright_status {
  TILEWRIGHT_OK = 0,
  TILEWRIGHT_INVALID_ARGUMENT = 1,
  TILEWRIGHT_UNSUPPORTED = 2,
  TILEWRIGHT_DOES_NOT_FIT = 3,
  TILEWRIGHT_NOT_PREPARED = 4,
  TILEWRIGHT_UNAVAILABLE = 5,
  TILEWRIGHT_OUT_OF_MEMORY = 6,
  TILEWRIGHT_IO_ERROR = 7,
  TILEWRIGHT_INTERNAL = 8
} tilewright_status;

typedef enum tilewright_dtype {
  TILEWRIGHT_F32 = 0,
  TILEWRIGHT_BF16 = 1,
  TILEWRIGHT_F16 = 2
} tilewright_dtype;

typedef enum tilewright_length_kind {
  TILEWRIGHT_LENGTHS_FIXED = 0,
  TILEWRIGHT_LENGTHS_PER_SEQUENCE = 1, /* padded: int32 [batch] at run */
  TILEWRIGHT_LENGTHS_CUMULATIVE = 2    /* packed: int32 [batch + 1] at run */
} tilewright_length_kind;

typedef enum tilewright_per_head {
  TILEWRIGHT_PER_HEAD_NONE = 0,
  TILEWRIGHT_PER_HEAD = 1,      /* fp32 [heads] */
  TILEWRIGHT_PER_BATCH_HEAD = 2 /* fp32 [batch, heads] */
} tilewright_per_head;

typedef enum tilewright_bias_kind {
  TILEWRIGHT_BIAS_NONE = 0,
  TILEWRIGHT_BIAS_ADDITIVE = 1,
  TILEWRIGHT_BIAS_BOOLEAN = 2
} tilewright_bias_kind;

typedef enum tilewright_diagonal {
  TILEWRIGHT_BOTTOM_RIGHT = 0,
  TILEWRIGHT_TOP_LEFT = 1
} tilewright_diagonal;

typedef enum tilewright_schedule {
  TILEWRIGHT_SCHEDULE_AUTO = -1,
  TILEWRIGHT_SCHEDULE_Q_OUTER = 0,
  TILEWRIGHT_SCHEDULE_KV_OUTER = 1,
  TILEWRIGHT_SCHEDULE_STANDARD = 2
} tilewright_schedule;

/* Strides in elements of a [batch, tokens, heads, dim] operand. given == 0: contiguous in that
 * order. */
typedef struct tilewright_operand {
  int32_t given;
  int32_t alignment_bytes; /* promised of the address; 0: one element's */
  int64_t batch_stride;
  int64_t token_stride;
  int64_t head_stride;
  int64_t dim_stride;
} tilewright_operand;

typedef struct tilewright_lengths {
  int32_t kind;         /* tilewright_length_kind */
  int32_t on_device;    /* 0: host memory, 1: device memory */
  int64_t max_tokens;   /* q_len or kv_len: the length, or its bound */
  int64_t total_tokens; /* rows of the packed buffer; 0 unless cumulative */
} tilewright_lengths;

typedef struct tilewright_attention_spec {
  size_t struct_size;
  int64_t batch;
  int64_t heads;
  int64_t kv_heads;
  tilewright_lengths q_lengths;
  tilewright_lengths kv_lengths;
  int64_t qk_dim;  /* 1..256 */
  int64_t v_dim;   /* 1..256; 0: qk_dim */
  int32_t dtype;   /* of q, k and v: tilewright_dtype */
  int32_t o_dtype; /* -1: dtype; or TILEWRIGHT_F32 */
  tilewright_operand q, k, v, o;
  double scale;   /* NaN: 1 / sqrt(qk_dim) */
  double softcap; /* 0: none */
  int32_t causal;
  int32_t diagonal;     /* tilewright_diagonal */
  int64_t window_left;  /* keys; -1: unbounded */
  int64_t window_right; /* keys; -1: unbounded */
  int32_t alibi;        /* tilewright_per_head */
  int32_t sinks;        /* tilewright_per_head */
  int32_t bias_kind;    /* tilewright_bias_kind */
  int32_t bias_dtype;   /* of an additive bias */
  int64_t bias_batch_stride;
  int64_t bias_head_stride;
  int64_t bias_q_stride;
  int64_t bias_kv_stride;
} tilewright_attention_spec;

typedef struct tilewright_plan_options {
  size_t struct_size;
  const char* device; /* NULL or "cpu": this CPU; "cuda": the current GPU; or a profile's id, to
                         plan for a machine not here */
  int64_t q_rows;     /* tile override, with kv_rows; 0: the planner's choice */
  int64_t kv_rows;
  int32_t schedule;        /* tilewright_schedule */
  int32_t deterministic;   /* 1: same bits for any number of workers */
  int32_t batch_invariant; /* 1: same bits for a sequence whatever its neighbours */
  int32_t reserved;
  int64_t workers;   /* CPU threads; 0: all */
  int64_t kv_splits; /* 0: the planner's choice */
  const char* isa;   /* CPU instruction set by name; NULL: the best there is */
} tilewright_plan_options;

typedef struct tilewright_tensors {
  size_t struct_size;
  const void* q;
  const void* k;
  const void* v;
  void* o;
  float* lse; /* [batch, heads, q_len], packed [heads, total q tokens]; may be NULL */
  const int32_t* q_lengths;
  const int32_t* kv_lengths;
  const float* alibi_slopes;
  const float* sinks;
  const void* bias;
} tilewright_tensors;

/* Threads that an engine lends: run_workers calls work(argument, worker) for each worker in
 * [0, workers), possibly at once, and returns when all are done. */
typedef struct tilewright_executor {
  void* context;
  int64_t concurrency;
  void (*run_workers)(void* context, int64_t workers, void (*work)(void* argument, int64_t worker),
                      void* argument);
} tilewright_executor;

typedef struct tilewright_run_options {
  size_t struct_size;
  void* workspace; /* 64-byte aligned; NULL: allocated for the call (CPU only) */
  size_t workspace_bytes;
  const tilewright_executor* executor; /* NULL: OpenMP's threads */
  void* stream;                        /* GPU: the caller's CUstream */
} tilewright_run_options;

typedef struct tilewright_plan tilewright_plan;

/* "major.minor.patch" of the library, and the ABI version that it was built with. */
const char* tilewright_version_text(void);
uint32_t tilewright_abi_version(void);

/* Set every field to its default, and struct_size. */
void tilewright_attention_spec_init(tilewright_attention_spec* spec);
void tilewright_plan_options_init(tilewright_plan_options* options);
void tilewright_tensors_init(tilewright_tensors* tensors);
void tilewright_run_options_init(tilewright_run_options* options);

/* Checks the spec and plans it; options may be NULL. *plan is NULL unless TILEWRIGHT_OK is
 * returned. */
tilewright_status tilewright_plan_create(const tilewright_attention_spec* spec,
                                         const tilewright_plan_options* options,
                                         tilewright_plan** plan);
/* Does nothing for NULL. */
void tilewright_plan_destroy(tilewright_plan* plan);

/* Bytes of workspace that tilewright_run needs; 0 for NULL. */
size_t tilewright_plan_workspace_bytes(const tilewright_plan* plan);
/* The plan for people and as JSON; valid as long as the plan. "" for NULL. */
const char* tilewright_plan_text(const tilewright_plan* plan);
const char* tilewright_plan_json(const tilewright_plan* plan);

/* On a GPU: compiles and loads what the plan needs in the current CUDA context, so that
 * tilewright_run only launches, and may be captured in a graph. Nothing to do on CPUs. */
tilewright_status tilewright_prepare(const tilewright_plan* plan);

/* Makes a workspace ready for any number of runs; on a GPU in the order of the stream (a CUstream).
 * Nothing to do on CPUs. */
tilewright_status tilewright_init_workspace(const tilewright_plan* plan, void* workspace,
                                            size_t workspace_bytes, void* stream);

/* Computes O, and LSE where it is not NULL; options may be NULL. On a GPU: launches on the stream,
 * in the current context, and returns. */
tilewright_status tilewright_run(const tilewright_plan* plan, const tilewright_tensors* tensors,
                                 const tilewright_run_options* options);

/* "invalid argument" for 1, and so on. */
const char* tilewright_status_text(tilewright_status status);
/* The message of the calling thread's last call that failed: field, value, what is accepted. */
const char* tilewright_error_text(void);

#ifdef __cplusplus
}
#endif

#endif /* TILEWRIGHT_C_TILEWRIGHT_H */
