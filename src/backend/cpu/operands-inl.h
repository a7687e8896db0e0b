// src/backend/cpu/operands-inl.h: a task's operands and scratch, and how its rows of O and LSE are
// written.
//
// Inline code of one instruction set: included inside its namespace.

/// A worker's scratch, carved into one tile's packed operands and sums.
template <class Arithmetic>
struct Scratch {
  float* q;       ///< panels [depth][rows], one a row block; streamed: [rows][qk_dim]
  float* k;       ///< panels [depth][width]
  float* v;       ///< panels [keys][width]
  float* scores;  ///< one row block, rows kCpuScoreStride apart
  float* o;       ///< [rows][o_stride]
  float* max;     ///< [rows]
  float* sums;    ///< [rows][kLanes]
  Index depth;    ///< units of a q or k row
  Index o_stride;

  Scratch(const ForwardCall& call, std::byte* memory) {
    const AttentionSpec& spec = call.problem.spec();
    const auto bytes = schedule::cpu_forward_footprint(
        call.tile.q_rows, call.tile.kv_rows, spec.qk_dim, spec.v_dim, 4 / Arithmetic::kElements);
    const auto take = [&](Index size) {
      float* part = reinterpret_cast<float*>(memory);
      memory += schedule::round_up(size, 64);
      return part;
    };
    depth = Arithmetic::depth(spec.qk_dim);
    o_stride = schedule::round_up(spec.v_dim, kLanes);
    scores = take(schedule::kCpuScoreRows * schedule::kCpuScoreStride * 4);
    const Index rows = schedule::max(call.tile.q_rows, schedule::kCpuScoreRows);
    sums = take(rows * kLanes * 4);
    max = take(rows * 4);
    q = take(schedule::max(bytes.q_bytes, schedule::kCpuScoreRows * spec.qk_dim * 4));
    k = take(bytes.k_bytes);
    v = take(bytes.v_bytes);
    o = take(rows * o_stride * 4);
  }

  /// Nothing seen yet.
  void clear(Index rows) const {
    const FloatTag d;
    for (Index row = 0; row < rows; ++row) {
      max[row] = -std::numeric_limits<float>::infinity();
      hn::Store(hn::Zero(d), d, sums + row * kLanes);
    }
    for (Index i = 0; i < rows * o_stride; i += kLanes) hn::Store(hn::Zero(d), d, o + i);
  }
};

/// The rows of q, k and v that a task reads: its own queries, and its sequence's keys and values.
struct TaskOperands {
  Rows q, k, v;

  TaskOperands() = default;
  TaskOperands(const ForwardCall& call, const ForwardTask& task) {
    const AttentionSpec& spec = call.problem.spec();
    const auto element = static_cast<Index>(size_bytes(spec.dtype));
    const auto rows = [&](const void* data, const Strides& strides, const Lengths& lengths,
                          Index first_token, Index head, Index heads, Index dim) {
      const Index batch = lengths.kind == LengthKind::cumulative ? 0 : task.batch;
      const Index offset =
          batch * strides.batch + first_token * strides.token + head * strides.head;
      return Rows{static_cast<const char*>(data) + offset * element,
                  spec.dtype,
                  strides.token * element,
                  strides.head * element,
                  heads,
                  strides.dim,
                  dim};
    };
    q = rows(call.tensors.q, call.problem.q(), spec.q_lengths, task.q_first_row + task.token_begin,
             task.head, task.heads, spec.qk_dim);
    k = rows(call.tensors.k, call.problem.k(), spec.kv_lengths, task.kv_first_row, task.kv_head, 1,
             spec.qk_dim);
    v = rows(call.tensors.v, call.problem.v(), spec.kv_lengths, task.kv_first_row, task.kv_head, 1,
             spec.v_dim);
  }
};

/// Writes one row of O, scaled, in its dtype and strides.
inline void store_output(const ForwardCall& call, const ForwardTask& task, Index row,
                         const float* from, float scale) {
  const FloatTag d;
  const AttentionSpec& spec = call.problem.spec();
  const Strides& strides = call.problem.o();
  const DType dtype = call.problem.o_dtype();
  const Index batch = spec.q_lengths.kind == LengthKind::cumulative ? 0 : task.batch;
  const Index offset = batch * strides.batch +
                       (task.q_first_row + task.token(row)) * strides.token +
                       task.head_of(row) * strides.head;
  char* to = static_cast<char*>(call.tensors.o) + offset * static_cast<Index>(size_bytes(dtype));
  auto* floats = reinterpret_cast<float*>(to);
  auto* halves = reinterpret_cast<std::uint16_t*>(to);
  Index i = 0;
  if (strides.dim == 1) {
    const FloatVector scales = hn::Set(d, scale);
    for (; i + kLanes <= spec.v_dim; i += kLanes) {
      const FloatVector value = hn::Mul(hn::Load(d, from + i), scales);
      if (dtype == DType::f32) {
        hn::StoreU(value, d, floats + i);
      } else if (dtype == DType::bf16) {
        store_bf16(value, halves + i);
      } else {
        store_f16(value, halves + i);
      }
    }
  }
  for (; i < spec.v_dim; ++i) {
    const float value = from[i] * scale;
    if (dtype == DType::f32) {
      floats[i * strides.dim] = value;
    } else {
      halves[i * strides.dim] = dtype == DType::bf16 ? float_to_bf16(value) : float_to_f16(value);
    }
  }
}

/// Writes one finished row of O and LSE.
inline void finish_output(const ForwardCall& call, const ForwardTask& task, Index row,
                          const float* o, float max, float sum, double natural_per_unit) {
  const RowEnd end = finish_row(call, task, row, max, sum, natural_per_unit);
  store_output(call, task, row, o, end.scale);
  if (call.tensors.lse != nullptr) call.tensors.lse[lse_index(call, task, row)] = end.lse;
}

/// Keeps one row's unnormalised O, maximum and sum for merge_rows.
inline void store_partial(const ForwardCall& call, const ForwardTask& task, Index row,
                          const float* from, float max, float sum) {
  const Index v_dim = call.problem.spec().v_dim;
  float* to = call.partials +
              (task.split * call.problem.lse_rows() + lse_index(call, task, row)) * (v_dim + 2);
  to[0] = max;
  to[1] = sum;
  for (Index i = 0; i < v_dim; ++i) to[2 + i] = from[i];
}

/// Asks for part `index` of `parts` of operand rows [first, first + count) to be brought to L2,
/// while the tile before them is computed.
HWY_INLINE void prefetch_rows(const Rows& rows, Index first, Index count, Index index,
                              Index parts) {
  if (rows.dim_stride != 1) return;
  const Index bytes = rows.dim * static_cast<Index>(size_bytes(rows.dtype));
  for (Index r = first + count * index / parts; r < first + count * (index + 1) / parts; ++r) {
    for (Index at = 0; at < bytes; at += 64) __builtin_prefetch(rows.row(r) + at, 0, 2);
  }
}
