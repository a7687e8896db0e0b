// src/reference/problem_data.cpp: allocates, poisons and fills the tensors of one test case.
#include "reference/problem_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "reference/element.h"
#include "reference/head.h"
#include "reference/random.h"

namespace tilewright::reference {
namespace {

constexpr std::size_t kGuardBytes = 256;
constexpr std::size_t kPageBytes = 4096;
constexpr std::array<const char*, kTensorCount> kNames = {
    "q", "k", "v", "o", "lse", "q_lengths", "kv_lengths", "alibi_slopes", "sinks", "bias"};

struct Axis {
  std::int64_t extent = 0;
  std::int64_t stride = 0;
};

// Room for every element of the axes, a guard on either side, and a first element that is aligned
// as promised and no better.
Buffer allocate(const std::vector<Axis>& axes, std::size_t element_bytes,
                std::size_t alignment_bytes) {
  std::int64_t lowest = 0;
  std::int64_t highest = 0;
  bool empty = false;
  for (const Axis& axis : axes) {
    empty = empty || axis.extent == 0;
    const std::int64_t last = axis.stride * std::max<std::int64_t>(axis.extent - 1, 0);
    lowest += std::min<std::int64_t>(last, 0);
    highest += std::max<std::int64_t>(last, 0);
  }
  if (empty) lowest = highest = 0;
  const std::size_t below = static_cast<std::size_t>(-lowest) * element_bytes + kGuardBytes;
  const std::size_t above = static_cast<std::size_t>(highest + 1) * element_bytes + kGuardBytes;
  Buffer buffer;
  // An odd multiple of the alignment.
  buffer.origin_bytes =
      (below + 2 * alignment_bytes - 1) / (2 * alignment_bytes) * (2 * alignment_bytes) +
      alignment_bytes;
  buffer.bytes = (buffer.origin_bytes + above + 1) / 2 * 2;
  buffer.storage = std::make_unique<std::byte[]>(buffer.bytes + kPageBytes);
  const auto address = reinterpret_cast<std::uintptr_t>(buffer.storage.get());
  buffer.data = buffer.storage.get() + (kPageBytes - address % kPageBytes) % kPageBytes;
  buffer.used.assign(buffer.bytes, false);
  return buffer;
}

std::int64_t rows(const Lengths& lengths) {
  return lengths.kind == LengthKind::cumulative ? lengths.total_tokens : lengths.max_tokens;
}

bool is_output(TensorId id) {
  return id == TensorId::o || id == TensorId::lse;
}
bool is_lengths(TensorId id) {
  return id == TensorId::q_lengths || id == TensorId::kv_lengths;
}

std::size_t element_bytes(const AttentionSpec& spec, TensorId id) {
  switch (id) {
    case TensorId::q:
    case TensorId::k:
    case TensorId::v:
      return size_bytes(spec.dtype);
    case TensorId::o:
      return size_bytes(*spec.o_dtype);
    case TensorId::bias:
      return spec.bias.kind == BiasKind::boolean ? 1 : size_bytes(spec.bias.dtype);
    case TensorId::lse:
    case TensorId::q_lengths:
    case TensorId::kv_lengths:
    case TensorId::alibi_slopes:
    case TensorId::sinks:
      break;
  }
  return 4;
}

}  // namespace

void poison(void* data, std::size_t bytes, std::uint16_t pattern) {
  auto* byte = static_cast<unsigned char*>(data);
  for (std::size_t i = 0; i < bytes; ++i) {
    byte[i] = static_cast<unsigned char>(i % 2 == 0 ? pattern & 0xff : pattern >> 8);
  }
}

Result<ProblemData> ProblemData::create(const Case& what) {
  Result<AttentionProblem> problem = AttentionProblem::create(what.spec);
  if (!problem.ok()) return problem.status();
  ProblemData data(*problem);
  data.what_ = what;
  data.allocate_all();
  data.fill_all();
  return data;
}

void ProblemData::allocate_all() {
  const AttentionSpec& spec = problem_.spec();
  const auto operand = [&](TensorId id, const Operand& o, const Lengths& lengths,
                           std::int64_t heads, std::int64_t dim) {
    const std::int64_t batch = lengths.kind == LengthKind::cumulative ? 1 : spec.batch;
    at(id) = allocate({{batch, o.strides->batch},
                       {rows(lengths), o.strides->token},
                       {heads, o.strides->head},
                       {dim, o.strides->dim}},
                      element_bytes(spec, id), static_cast<std::size_t>(o.alignment_bytes));
  };
  operand(TensorId::q, spec.q, spec.q_lengths, spec.heads, spec.qk_dim);
  operand(TensorId::k, spec.k, spec.kv_lengths, spec.kv_heads, spec.qk_dim);
  operand(TensorId::v, spec.v, spec.kv_lengths, spec.kv_heads, spec.v_dim);
  operand(TensorId::o, spec.o, spec.q_lengths, spec.heads, spec.v_dim);
  at(TensorId::lse) = allocate({{problem_.lse_rows(), 1}}, 4, 4);
  const auto lengths = [&](TensorId id, const std::vector<std::int32_t>& values) {
    if (values.empty()) return;
    Buffer& buffer = at(id);
    buffer = allocate({{static_cast<std::int64_t>(values.size()), 1}}, 4, 4);
    poison(buffer.data, buffer.bytes);
    std::memcpy(buffer.address(), values.data(), values.size() * 4);
    const auto begin = buffer.used.begin() + static_cast<std::ptrdiff_t>(buffer.origin_bytes);
    std::fill_n(begin, values.size() * 4, true);
  };
  lengths(TensorId::q_lengths, what_.q_lengths);
  lengths(TensorId::kv_lengths, what_.kv_lengths);
  const auto per_head = [&](TensorId id, PerHead kind) {
    if (kind == PerHead::none) return;
    at(id) =
        allocate({{kind == PerHead::per_head ? 1 : spec.batch, spec.heads}, {spec.heads, 1}}, 4, 4);
  };
  per_head(TensorId::alibi_slopes, spec.alibi);
  per_head(TensorId::sinks, spec.sinks);
  if (spec.bias.kind != BiasKind::none) {
    const std::size_t bytes = element_bytes(spec, TensorId::bias);
    at(TensorId::bias) = allocate({{spec.batch, spec.bias.batch_stride},
                                   {spec.heads, spec.bias.head_stride},
                                   {problem_.q_len(), spec.bias.q_stride},
                                   {problem_.kv_len(), spec.bias.kv_stride}},
                                  bytes, bytes);
  }
  for (std::size_t i = 0; i < kTensorCount; ++i) {
    const auto id = static_cast<TensorId>(i);
    Buffer& buffer = at(id);
    if (!buffer.present() || is_lengths(id)) continue;
    poison(buffer.data, buffer.bytes);
    for_each_element(id, [&](const ElementIndex&, std::int64_t offset) {
      const auto bytes = static_cast<std::ptrdiff_t>(element_bytes(spec, id));
      const auto first = static_cast<std::ptrdiff_t>(buffer.origin_bytes) + offset * bytes;
      std::fill_n(buffer.used.begin() + first, bytes, true);
    });
  }
}

void ProblemData::for_each_element(
    TensorId id, const std::function<void(const ElementIndex&, std::int64_t)>& visit) const {
  const AttentionSpec& spec = problem_.spec();
  const AttentionTensors addresses = tensors();
  const auto range = [&](bool queries, std::int64_t batch) {
    return queries ? token_range(spec.q_lengths, addresses.q_lengths, batch)
                   : token_range(spec.kv_lengths, addresses.kv_lengths, batch);
  };
  const auto operand = [&](const Strides& strides, bool queries, std::int64_t heads,
                           std::int64_t dim) {
    for (std::int64_t b = 0; b < spec.batch; ++b) {
      const TokenRange tokens = range(queries, b);
      for (std::int64_t t = 0; t < tokens.tokens; ++t) {
        for (std::int64_t h = 0; h < heads; ++h) {
          const std::int64_t first = tokens.offset(strides, t, h);
          for (std::int64_t d = 0; d < dim; ++d) visit({b, t, h, d}, first + d * strides.dim);
        }
      }
    }
  };
  const auto per_head = [&](PerHead kind) {
    const std::int64_t batches = kind == PerHead::per_batch_head ? spec.batch : 1;
    for (std::int64_t b = 0; b < batches; ++b) {
      for (std::int64_t h = 0; h < spec.heads; ++h) visit({b, 0, h, 0}, b * spec.heads + h);
    }
  };
  const Bias& bias = spec.bias;
  switch (id) {
    case TensorId::q:
      return operand(problem_.q(), true, spec.heads, spec.qk_dim);
    case TensorId::k:
      return operand(problem_.k(), false, spec.kv_heads, spec.qk_dim);
    case TensorId::v:
      return operand(problem_.v(), false, spec.kv_heads, spec.v_dim);
    case TensorId::o:
      return operand(problem_.o(), true, spec.heads, spec.v_dim);
    case TensorId::alibi_slopes:
      return per_head(spec.alibi);
    case TensorId::sinks:
      return per_head(spec.sinks);
    case TensorId::lse:
    case TensorId::bias:
      for (std::int64_t b = 0; b < spec.batch; ++b) {
        const std::int64_t queries = range(true, b).tokens;
        const std::int64_t keys = id == TensorId::lse ? 1 : range(false, b).tokens;
        for (std::int64_t h = 0; h < spec.heads; ++h) {
          for (std::int64_t i = 0; i < queries; ++i) {
            for (std::int64_t j = 0; j < keys; ++j) {
              visit({b, i, h, j}, id == TensorId::lse
                                      ? lse_index(problem_, addresses, {b, h, i})
                                      : b * bias.batch_stride + h * bias.head_stride +
                                            i * bias.q_stride + j * bias.kv_stride);
            }
          }
        }
      }
      return;
    case TensorId::q_lengths:
    case TensorId::kv_lengths:
      return;
  }
}

void ProblemData::set(TensorId id, const ElementValue& value) {
  const AttentionSpec& spec = problem_.spec();
  void* address = at(id).address();
  if (address == nullptr) return;
  for_each_element(id, [&](const ElementIndex& index, std::int64_t offset) {
    const float number = value(index);
    if (id == TensorId::bias && spec.bias.kind == BiasKind::boolean) {
      static_cast<std::uint8_t*>(address)[offset] = number != 0 ? 1 : 0;
    } else if (id == TensorId::bias) {
      store(address, spec.bias.dtype, offset, number);
    } else if (id == TensorId::alibi_slopes || id == TensorId::sinks) {
      static_cast<float*>(address)[offset] = number;
    } else {
      store(address, spec.dtype, offset, number);
    }
  });
}

void ProblemData::fill_all() {
  Random random(what_.seed);
  const auto normal = [&](const ElementIndex&) { return static_cast<float>(random.normal()); };
  set(TensorId::q, normal);
  set(TensorId::k, normal);
  set(TensorId::v, normal);
  set(TensorId::alibi_slopes,
      [&](const ElementIndex&) { return static_cast<float>(random.uniform() - 0.25); });
  // A few sinks that are absent, and a few that outweigh every score.
  set(TensorId::sinks, [&](const ElementIndex&) {
    if (random.chance(0.05)) return -std::numeric_limits<float>::infinity();
    return static_cast<float>(random.normal() * (random.chance(0.1) ? 40 : 3));
  });
  const bool boolean = problem_.spec().bias.kind == BiasKind::boolean;
  set(TensorId::bias, [&](const ElementIndex&) {
    if (boolean) return random.chance(0.7) ? 1.0f : 0.0f;
    if (random.chance(0.1)) return -std::numeric_limits<float>::infinity();
    return static_cast<float>(random.normal() * 2);
  });
}

AttentionTensors ProblemData::tensors() const {
  AttentionTensors t;
  t.q = buffer(TensorId::q).address();
  t.k = buffer(TensorId::k).address();
  t.v = buffer(TensorId::v).address();
  t.o = buffer(TensorId::o).address();
  t.lse = static_cast<float*>(buffer(TensorId::lse).address());
  t.q_lengths = static_cast<const std::int32_t*>(buffer(TensorId::q_lengths).address());
  t.kv_lengths = static_cast<const std::int32_t*>(buffer(TensorId::kv_lengths).address());
  t.alibi_slopes = static_cast<const float*>(buffer(TensorId::alibi_slopes).address());
  t.sinks = static_cast<const float*>(buffer(TensorId::sinks).address());
  t.bias = buffer(TensorId::bias).address();
  return t;
}

void ProblemData::set_outside(std::uint16_t pattern) {
  for (Buffer& buffer : buffers_) {
    for (std::size_t i = 0; i < buffer.bytes; ++i) {
      if (!buffer.used[i]) {
        buffer.data[i] = static_cast<std::byte>(i % 2 == 0 ? pattern & 0xff : pattern >> 8);
      }
    }
  }
}

void ProblemData::prepare_run() {
  for (std::size_t i = 0; i < kTensorCount; ++i) {
    Buffer& buffer = buffers_[i];
    if (!buffer.present()) continue;
    if (is_output(static_cast<TensorId>(i))) {
      poison(buffer.data, buffer.bytes);
    } else {
      buffer.before.assign(buffer.data, buffer.data + buffer.bytes);
    }
  }
}

std::optional<std::string> ProblemData::violation() const {
  for (std::size_t t = 0; t < kTensorCount; ++t) {
    const Buffer& buffer = buffers_[t];
    const bool output = is_output(static_cast<TensorId>(t));
    for (std::size_t i = 0; i < buffer.bytes; ++i) {
      const auto poisoned = static_cast<std::byte>(i % 2 == 0 ? kPoison & 0xff : kPoison >> 8);
      const bool intact = output ? buffer.used[i] || buffer.data[i] == poisoned
                                 : buffer.data[i] == buffer.before[i];
      if (!intact) {
        return fmt::format(
            "{} was written at byte {} from its first element, {}", kNames[t],
            static_cast<std::int64_t>(i) - static_cast<std::int64_t>(buffer.origin_bytes),
            output ? "which lies outside every row" : "though it is an input");
      }
    }
  }
  return std::nullopt;
}

}  // namespace tilewright::reference
