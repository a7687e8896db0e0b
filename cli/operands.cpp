// cli/operands.cpp: turns arrays from files into an attention problem and its addresses.
#include "operands.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include "files/npy.h"
#include "files/safetensors.h"
#include "reference/element.h"
#include "text.h"

namespace tilewright::cli {
namespace {

using files::Array;
using files::shape_text;

Status refuse(std::string_view flag, const Array& array, std::string_view field,
              std::string_view value, std::string_view accepted) {
  return {StatusCode::invalid_argument,
          fmt::format("{}: {}: {} is {}; accepted: {}", flag, array.label, field, value, accepted)};
}

Result<Array> read_array(const std::string& flag, const std::string& path,
                         const std::string& tensor, bool safetensors) {
  const auto read = [&]() -> Result<Array> {
    if (!safetensors && !path.ends_with(".safetensors")) return files::read_npy(path);
    const auto file = files::SafetensorsFile::open(path);
    if (!file.ok()) return file.status();
    return file->tensor(tensor);
  };
  Result<Array> array = read();
  if (array.ok()) return array;
  return Status{array.status().code(), fmt::format("{}: {}", flag, array.status().message())};
}

// An operand's extents, whatever the order of its axes in the file.
struct View {
  std::int64_t batch = 1, tokens = 0, heads = 1, dim = 0;
  Operand operand;
};

std::int64_t alignment_of(const void* data) {
  const auto address = std::bit_cast<std::uintptr_t>(data);
  return address == 0 ? 64 : std::int64_t{1} << std::min(std::countr_zero(address), 6);
}

Result<View> view_of(std::string_view flag, const Array& array, Layout layout, bool packed) {
  const std::size_t rank = array.shape.size();
  if (rank < 2 || rank > (packed ? 3 : 4)) {
    const bool bshd = layout == Layout::bshd;
    return refuse(
        flag, array, "shape", shape_text(array.shape),
        fmt::format("[tokens, dim], {}{}", bshd ? "[tokens, heads, dim]" : "[heads, tokens, dim]",
                    packed ? " of a packed batch"
                    : bshd ? ", [batch, tokens, heads, dim]"
                           : ", [batch, heads, tokens, dim]"));
  }
  View view;
  Strides strides;
  std::size_t axis = 0;
  const auto next = [&](std::int64_t& extent, std::int64_t& stride) {
    extent = array.shape[axis];
    stride = array.strides[axis++];
  };
  if (rank == 4) next(view.batch, strides.batch);
  if (rank >= 3 && layout == Layout::bhsd) next(view.heads, strides.head);
  next(view.tokens, strides.token);
  if (rank >= 3 && layout == Layout::bshd) next(view.heads, strides.head);
  next(view.dim, strides.dim);
  view.operand.strides = strides;
  view.operand.alignment_bytes =
      std::max(alignment_of(array.data), static_cast<std::int64_t>(size_bytes(array.dtype)));
  return view;
}

bool is_float(DType dtype) {
  return dtype == DType::f32 || dtype == DType::bf16 || dtype == DType::f16;
}

// Reads the whole call: one member function for each kind of array.
class Reader {
 public:
  Reader(const InputPaths& paths, Layout layout, bool packed)
      : paths_(paths), layout_(layout), packed_(packed), out_(std::make_unique<Operands>()) {}

  Result<std::unique_ptr<Operands>> read() {
    Status status = read_qkv();
    if (status.ok()) status = packed_ ? read_packed_lengths() : read_padded_lengths();
    if (status.ok()) status = read_per_head("--alibi", paths_.alibi, "alibi", out_->alibi);
    if (status.ok()) status = read_per_head("--sink", paths_.sinks, "sink", out_->sinks);
    if (status.ok()) status = read_bias();
    if (!status.ok()) return status;
    fill_shapes();
    return std::move(out_);
  }

 private:
  AttentionSpec& spec() { return out_->spec; }

  Result<Array> read_input(const std::string& flag, const std::string& path,
                           const std::string& tensor, bool safetensors = false) {
    Result<Array> array = read_array(flag, path, tensor, safetensors);
    if (!array.ok()) return array;
    if (!array->converted_from.empty()) {
      out_->notes.push_back(
          fmt::format("{}: {}: rounded from {} to f32", flag, array->label, array->converted_from));
    }
    out_->input_bytes += array->bytes();
    out_->arrays.push_back(*array);
    return array;
  }

  Result<Array> read_operand(const std::string& flag, const std::string& path,
                             const std::string& tensor) {
    if (path.empty() && paths_.input.empty()) {
      return Status{StatusCode::invalid_argument,
                    fmt::format("{} is absent; accepted: --q, --k and --v, or --input with tensors "
                                "q, k and v",
                                flag)};
    }
    Result<Array> array = path.empty() ? read_input("--input", paths_.input, tensor, true)
                                       : read_input(flag, path, tensor);
    if (array.ok() && !is_float(array->dtype)) {
      return refuse(flag, *array, "dtype", name(array->dtype), "f32, bf16, f16");
    }
    return array;
  }

  Status read_qkv() {
    if (!paths_.input.empty() && !paths_.q.empty() && !paths_.k.empty() && !paths_.v.empty()) {
      return {StatusCode::invalid_argument,
              fmt::format("--input is {}, from which nothing would be read; accepted: --input for "
                          "what --q, --k and --v do not give",
                          quote(paths_.input))};
    }
    const Result<Array> q = read_operand("--q", paths_.q, "q");
    if (!q.ok()) return q.status();
    const Result<Array> k = read_operand("--k", paths_.k, "k");
    if (!k.ok()) return k.status();
    const Result<Array> v = read_operand("--v", paths_.v, "v");
    if (!v.ok()) return v.status();
    const Result<View> q_view = view_of("--q", *q, layout_, packed_);
    if (!q_view.ok()) return q_view.status();
    q_ = *q_view;
    q_rank_ = q->shape.size();
    const Result<View> k_view = view_of("--k", *k, layout_, packed_);
    if (!k_view.ok()) return k_view.status();
    const Result<View> v_view = view_of("--v", *v, layout_, packed_);
    if (!v_view.ok()) return v_view.status();
    k_ = *k_view;
    Status status = check_agreement("--k", *k, k_, q->dtype);
    if (status.ok()) status = check_agreement("--v", *v, *v_view, q->dtype);
    if (status.ok()) status = check_extent("--k", *k, "head dim", k_.dim, q_.dim, "q's");
    if (status.ok()) status = check_extent("--v", *v, "tokens", v_view->tokens, k_.tokens, "k's");
    if (status.ok()) status = check_extent("--v", *v, "heads", v_view->heads, k_.heads, "k's");
    if (!status.ok()) return status;
    spec().dtype = q->dtype;
    spec().batch = q_.batch;
    spec().heads = q_.heads;
    spec().kv_heads = k_.heads;
    spec().qk_dim = q_.dim;
    v_dim_ = v_view->dim;
    spec().v_dim = v_dim_;
    spec().q = q_.operand;
    spec().k = k_.operand;
    spec().v = v_view->operand;
    out_->tensors.q = q->data;
    out_->tensors.k = k->data;
    out_->tensors.v = v->data;
    // To the library 0 means "as q"; in a file it is an extent that nothing accepts.
    if (v_dim_ == 0) return refuse("--v", *v, "head dim", "0", "1 to 256");
    return {};
  }

  static Status check_extent(std::string_view flag, const Array& array, std::string_view what,
                             std::int64_t value, std::int64_t expected, std::string_view whose) {
    if (value == expected) return {};
    return refuse(flag, array, what, fmt::format("{} of shape {}", value, shape_text(array.shape)),
                  fmt::format("{}, {}", expected, whose));
  }

  Status check_agreement(std::string_view flag, const Array& array, const View& view,
                         DType dtype) const {
    if (array.dtype != dtype) {
      return refuse(flag, array, "dtype", name(array.dtype), fmt::format("{}, q's", name(dtype)));
    }
    if (array.shape.size() != q_rank_) {
      return refuse(flag, array, "shape", shape_text(array.shape),
                    fmt::format("{} axes, as q has", q_rank_));
    }
    return check_extent(flag, array, "batch", view.batch, q_.batch, "q's");
  }

  // Integers from low to high, as int32.
  Result<std::vector<std::int32_t>> read_lengths(const std::string& flag, const std::string& path,
                                                 const std::string& tensor, std::int64_t high) {
    const Result<Array> array = read_input(flag, path, tensor);
    if (!array.ok()) return array.status();
    if (array->dtype != DType::i32 && array->dtype != DType::i64) {
      return refuse(flag, *array, "dtype", name(array->dtype), "i32, i64");
    }
    if (array->shape.size() != 1) {
      return refuse(flag, *array, "shape", shape_text(array->shape), "one axis");
    }
    high = std::min<std::int64_t>(high, std::numeric_limits<std::int32_t>::max());
    std::vector<std::int32_t> lengths(static_cast<std::size_t>(array->elements()));
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      const std::int64_t value = array->dtype == DType::i32
                                     ? static_cast<const std::int32_t*>(array->data)[i]
                                     : static_cast<const std::int64_t*>(array->data)[i];
      if (value < 0 || value > high) {
        return refuse(flag, *array, fmt::format("element {}", i), fmt::format("{}", value),
                      fmt::format("0 to {}", high));
      }
      lengths[i] = static_cast<std::int32_t>(value);
    }
    return lengths;
  }

  Status read_padded(const std::string& flag, const std::string& path, const std::string& tensor,
                     std::int64_t tokens, Lengths& lengths, std::vector<std::int32_t>& values) {
    lengths.max_tokens = tokens;
    if (path.empty()) return {};
    auto read = read_lengths(flag, path, tensor, tokens);
    if (!read.ok()) return read.status();
    if (static_cast<std::int64_t>(read->size()) != spec().batch) {
      return refuse(flag, out_->arrays.back(), "length", fmt::format("{}", read->size()),
                    fmt::format("{}, the batch", spec().batch));
    }
    lengths.kind = LengthKind::per_sequence;
    values = std::move(*read);
    return {};
  }

  Status read_padded_lengths() {
    Status status = read_padded("--q-lengths", paths_.q_lengths, "q_lengths", q_.tokens,
                                spec().q_lengths, out_->q_lengths);
    if (!status.ok()) return status;
    return read_padded("--kv-lengths", paths_.kv_lengths, "kv_lengths", k_.tokens,
                       spec().kv_lengths, out_->kv_lengths);
  }

  Status read_offsets(const std::string& flag, const std::string& path, const std::string& tensor,
                      std::int64_t tokens, Lengths& lengths, std::vector<std::int32_t>& values) {
    auto read = read_lengths(flag, path, tensor, tokens);
    if (!read.ok()) return read.status();
    const Array& array = out_->arrays.back();
    if (read->empty() || read->front() != 0) {
      return refuse(flag, array, read->empty() ? "length" : "element 0",
                    fmt::format("{}", read->empty() ? 0 : read->front()),
                    read->empty() ? "1 or more: the batch + 1 offsets" : "0, the first offset");
    }
    std::int64_t longest = 0;
    for (std::size_t i = 1; i < read->size(); ++i) {
      if ((*read)[i] < (*read)[i - 1]) {
        return refuse(flag, array, fmt::format("element {}", i), fmt::format("{}", (*read)[i]),
                      fmt::format("{} or more, the offset before it", (*read)[i - 1]));
      }
      longest = std::max<std::int64_t>(longest, (*read)[i] - (*read)[i - 1]);
    }
    lengths = {LengthKind::cumulative, longest, tokens, MemorySpace::host};
    values = std::move(*read);
    return {};
  }

  Status read_packed_lengths() {
    if (paths_.q_lengths.empty()) {
      return {StatusCode::invalid_argument,
              "--q-lengths is absent; accepted with --packed: a file of batch + 1 offsets"};
    }
    Status status = read_offsets("--q-lengths", paths_.q_lengths, "q_lengths", q_.tokens,
                                 spec().q_lengths, out_->q_lengths);
    if (!status.ok()) return status;
    const std::string& kv = paths_.kv_lengths.empty() ? paths_.q_lengths : paths_.kv_lengths;
    status = read_offsets(paths_.kv_lengths.empty() ? "--q-lengths (for k and v)" : "--kv-lengths",
                          kv, paths_.kv_lengths.empty() ? "q_lengths" : "kv_lengths", k_.tokens,
                          spec().kv_lengths, out_->kv_lengths);
    if (!status.ok()) return status;
    if (out_->kv_lengths.size() != out_->q_lengths.size()) {
      return refuse("--kv-lengths", out_->arrays.back(), "length",
                    fmt::format("{}", out_->kv_lengths.size()),
                    fmt::format("{}, that of --q-lengths", out_->q_lengths.size()));
    }
    spec().batch = static_cast<std::int64_t>(out_->q_lengths.size()) - 1;
    return {};
  }

  Status read_per_head(const std::string& flag, const std::string& path, const std::string& tensor,
                       std::vector<float>& values) {
    if (path.empty()) return {};
    const Result<Array> array = read_input(flag, path, tensor);
    if (!array.ok()) return array.status();
    if (!is_float(array->dtype)) {
      return refuse(flag, *array, "dtype", name(array->dtype), "f32, bf16, f16");
    }
    const std::vector<std::int64_t>& shape = array->shape;
    const bool per_head = shape == std::vector{spec().heads};
    if (!per_head && shape != std::vector{spec().batch, spec().heads}) {
      return refuse(flag, *array, "shape", shape_text(shape),
                    fmt::format("({},) or ({}, {}): heads, or batch and heads", spec().heads,
                                spec().batch, spec().heads));
    }
    const std::int64_t heads = spec().heads;
    const std::int64_t rows = per_head ? 1 : spec().batch;
    for (std::int64_t b = 0; b < rows; ++b) {
      for (std::int64_t h = 0; h < heads; ++h) {
        const std::int64_t at =
            h * array->strides.back() + (per_head ? 0 : b * array->strides.front());
        values.push_back(reference::load(array->data, array->dtype, at));
      }
    }
    (tensor == "alibi" ? spec().alibi : spec().sinks) =
        per_head ? PerHead::per_head : PerHead::per_batch_head;
    return {};
  }

  Status read_bias() {
    if (paths_.bias.empty()) return {};
    const Result<Array> array = read_input("--bias", paths_.bias, "bias");
    if (!array.ok()) return array.status();
    if (!is_float(array->dtype) && array->dtype != DType::boolean) {
      return refuse("--bias", *array, "dtype", name(array->dtype), "f32, bf16, f16, bool");
    }
    const std::int64_t full[] = {spec().batch, spec().heads, spec().q_lengths.max_tokens,
                                 spec().kv_lengths.max_tokens};
    std::int64_t strides[] = {0, 0, 0, 0};
    const std::size_t rank = array->shape.size();
    bool fits = rank >= 2 && rank <= 4;
    for (std::size_t axis = 0; fits && axis < rank; ++axis) {
      const std::size_t to = 4 - rank + axis;
      const std::int64_t extent = array->shape[axis];
      fits = extent == full[to] || extent == 1;
      strides[to] = extent == 1 ? 0 : array->strides[axis];
    }
    if (!fits) {
      return refuse("--bias", *array, "shape", shape_text(array->shape),
                    fmt::format("({}, {}, {}, {}): batch, heads, q and kv tokens, each of which "
                                "may be 1; or without its first axes",
                                full[0], full[1], full[2], full[3]));
    }
    spec().bias = {array->dtype == DType::boolean ? BiasKind::boolean : BiasKind::additive,
                   array->dtype == DType::boolean ? DType::f32 : array->dtype,
                   strides[0],
                   strides[1],
                   strides[2],
                   strides[3]};
    out_->tensors.bias = array->data;
    return {};
  }

  // O lies as q does, in C order; LSE has its axes without tokens' dim, heads first.
  void fill_shapes() {
    const bool bhsd = layout_ == Layout::bhsd;
    const std::int64_t tokens = q_.tokens;
    const std::int64_t heads = q_.heads;
    spec().o.strides =
        bhsd ? Strides::bhsd(tokens, heads, v_dim_) : Strides::bshd(tokens, heads, v_dim_);
    std::vector<std::int64_t>& o = out_->o_shape;
    if (q_rank_ == 4) o.push_back(q_.batch);
    if (q_rank_ >= 3 && bhsd) o.push_back(heads);
    o.push_back(tokens);
    if (q_rank_ >= 3 && !bhsd) o.push_back(heads);
    o.push_back(v_dim_);
    std::vector<std::int64_t>& lse = out_->lse_shape;
    if (q_rank_ == 4) lse.push_back(q_.batch);
    if (q_rank_ >= 3) lse.push_back(heads);
    lse.push_back(tokens);
    const auto address = [](const auto& values) {
      return values.empty() ? nullptr : values.data();
    };
    out_->tensors.q_lengths = address(out_->q_lengths);
    out_->tensors.kv_lengths = address(out_->kv_lengths);
    out_->tensors.alibi_slopes = address(out_->alibi);
    out_->tensors.sinks = address(out_->sinks);
  }

  const InputPaths& paths_;
  Layout layout_;
  bool packed_;
  std::unique_ptr<Operands> out_;
  View q_, k_;
  std::size_t q_rank_ = 0;
  std::int64_t v_dim_ = 0;
};

std::int64_t length_at(const Lengths& lengths, const std::vector<std::int32_t>& values,
                       std::size_t b) {
  switch (lengths.kind) {
    case LengthKind::fixed:
      return lengths.max_tokens;
    case LengthKind::per_sequence:
      return values[b];
    case LengthKind::cumulative:
      return values[b + 1] - values[b];
  }
  return 0;
}

}  // namespace

Result<std::unique_ptr<Operands>> read_operands(const InputPaths& paths, Layout layout,
                                                bool packed) {
  return Reader(paths, layout, packed).read();
}

double flops_of(const AttentionProblem& problem, const Operands& operands) {
  const AttentionSpec& spec = problem.spec();
  if (spec.q_lengths.kind == LengthKind::fixed && spec.kv_lengths.kind == LengthKind::fixed) {
    return problem.flops();
  }
  AttentionSpec one;
  one.heads = spec.heads;
  one.qk_dim = spec.qk_dim;
  one.v_dim = spec.v_dim;
  one.kv_heads = spec.kv_heads;
  one.mask = spec.mask;
  double flops = 0;
  for (std::size_t b = 0; b < static_cast<std::size_t>(spec.batch); ++b) {
    one.q_lengths.max_tokens = length_at(spec.q_lengths, operands.q_lengths, b);
    one.kv_lengths.max_tokens = length_at(spec.kv_lengths, operands.kv_lengths, b);
    const Result<AttentionProblem> sequence = AttentionProblem::create(one);
    if (sequence.ok()) flops += sequence->flops();
  }
  return flops;
}

}  // namespace tilewright::cli
