// src/backend/cpu/cpu_backend.cpp: runs forward plans on this machine's cores.
#include "backend/cpu/cpu_backend.h"

#include <bit>
#include <cmath>
#include <limits>

#include "schedule/sequence.h"
#include "schedule/tile_walk.h"

namespace tilewright::cpu {
namespace {

using schedule::Index;

float load(const void* data, DType dtype, Index i) {
  if (dtype == DType::f32) return static_cast<const float*>(data)[i];
  const std::uint16_t bits = static_cast<const std::uint16_t*>(data)[i];
  if (dtype == DType::bf16) return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
  _Float16 half = 0;
  __builtin_memcpy(&half, &bits, 2);
  return static_cast<float>(half);
}

void store(void* data, DType dtype, Index i, float value) {
  if (dtype == DType::f32) {
    static_cast<float*>(data)[i] = value;
  } else if (dtype == DType::bf16) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    static_cast<std::uint16_t*>(data)[i] =
        static_cast<std::uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
  } else {
    const auto half = static_cast<_Float16>(value);
    __builtin_memcpy(static_cast<char*>(data) + i * 2, &half, 2);
  }
}

}  // namespace

std::vector<std::string> instruction_sets() {
  return {"portable"};
}

Status run_forward(const Plan& plan, const AttentionTensors& t, const RunOptions& options) {
  const AttentionSpec& s = plan.problem.spec();
  Executor& executor = options.executor != nullptr ? *options.executor : default_executor();
  const auto sequence = [](const Lengths& lengths, const std::int32_t* data, Index b) {
    switch (lengths.kind) {
      case LengthKind::fixed:
        break;
      case LengthKind::per_sequence:
        return schedule::padded_sequence(data, b, lengths.max_tokens);
      case LengthKind::cumulative:
        return schedule::packed_sequence(data, b, lengths.max_tokens, lengths.total_tokens);
    }
    return schedule::Sequence{0, lengths.max_tokens};
  };
  const auto per_head = [&](PerHead kind, const float* data, Index b, Index h) {
    return kind == PerHead::per_head ? data[h] : data[b * s.heads + h];
  };
  const auto head = [&](Index b, Index h) {
    const auto q_seq = sequence(s.q_lengths, t.q_lengths, b);
    const auto kv_seq = sequence(s.kv_lengths, t.kv_lengths, b);
    const bool q_packed = s.q_lengths.kind == LengthKind::cumulative;
    const bool kv_packed = s.kv_lengths.kind == LengthKind::cumulative;
    const auto rule = schedule::make_mask_rule(q_seq.tokens, kv_seq.tokens, s.mask.causal,
                                               s.mask.diagonal == Diagonal::bottom_right,
                                               s.mask.window_left, s.mask.window_right);
    const auto at = [](const Strides& x, Index batch, Index token, Index head_index) {
      return batch * x.batch + token * x.token + head_index * x.head;
    };
    const Index kv_head = h / plan.problem.group();
    std::vector<float> o(static_cast<std::size_t>(s.v_dim));
    for (Index i = 0; i < q_seq.tokens; ++i) {
      float max = -std::numeric_limits<float>::infinity();
      float sum = 0;
      std::fill(o.begin(), o.end(), 0.0f);
      const Index q0 = at(plan.problem.q(), q_packed ? 0 : b, q_seq.first_row + i, h);
      const auto keys = rule.row(i);
      for (Index j = keys.begin; j < keys.end; ++j) {
        const Index k0 = at(plan.problem.k(), kv_packed ? 0 : b, kv_seq.first_row + j, kv_head);
        float dot = 0;
        for (Index d = 0; d < s.qk_dim; ++d) {
          dot += load(t.q, s.dtype, q0 + d * plan.problem.q().dim) *
                 load(t.k, s.dtype, k0 + d * plan.problem.k().dim);
        }
        float score = dot * static_cast<float>(plan.problem.scale());
        if (s.softcap > 0) {
          const auto cap = static_cast<float>(s.softcap);
          score = cap * std::tanh(score / cap);
        }
        if (s.alibi != PerHead::none) {
          const Index distance = i + kv_seq.tokens - q_seq.tokens - j;
          score -= per_head(s.alibi, t.alibi_slopes, b, h) *
                   static_cast<float>(distance < 0 ? -distance : distance);
        }
        if (s.bias.kind != BiasKind::none) {
          const Index at_bias = b * s.bias.batch_stride + h * s.bias.head_stride +
                                i * s.bias.q_stride + j * s.bias.kv_stride;
          if (s.bias.kind == BiasKind::additive) {
            score += load(t.bias, s.bias.dtype, at_bias);
          } else if (static_cast<const std::uint8_t*>(t.bias)[at_bias] == 0) {
            continue;
          }
        }
        if (score == -std::numeric_limits<float>::infinity()) continue;
        const float new_max = std::max(max, score);
        const float keep = std::exp(max - new_max);
        const float p = std::exp(score - new_max);
        const Index v0 = at(plan.problem.v(), kv_packed ? 0 : b, kv_seq.first_row + j, kv_head);
        for (Index d = 0; d < s.v_dim; ++d) {
          o[static_cast<std::size_t>(d)] = o[static_cast<std::size_t>(d)] * keep +
                                           p * load(t.v, s.dtype, v0 + d * plan.problem.v().dim);
        }
        sum = sum * keep + p;
        max = new_max;
      }
      if (s.sinks != PerHead::none) {
        const float sink = per_head(s.sinks, t.sinks, b, h);
        const float new_max = std::max(max, sink);
        if (new_max > -std::numeric_limits<float>::infinity()) {
          const float keep = std::exp(max - new_max);
          for (float& x : o) x *= keep;
          sum = sum * keep + std::exp(sink - new_max);
          max = new_max;
        }
      }
      const Index o0 = at(plan.problem.o(), q_packed ? 0 : b, q_seq.first_row + i, h);
      for (Index d = 0; d < s.v_dim; ++d) {
        store(t.o, plan.problem.o_dtype(), o0 + d * plan.problem.o().dim,
              sum > 0 ? o[static_cast<std::size_t>(d)] / sum : 0.0f);
      }
      if (t.lse != nullptr) {
        const Index row = q_packed ? h * s.q_lengths.total_tokens + q_seq.first_row + i
                                   : (b * s.heads + h) * s.q_lengths.max_tokens + i;
        t.lse[row] = max + std::log(sum);
      }
    }
  };
  const Index tasks = s.batch * s.heads;
  const Index workers = schedule::max(1, schedule::min(tasks, plan.forward().workers));
  executor.run_workers(workers, [&](Index worker) {
    for (Index task = worker; task < tasks; task += workers) head(task / s.heads, task % s.heads);
  });
  return {};
}

}  // namespace tilewright::cpu
