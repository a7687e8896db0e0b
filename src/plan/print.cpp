// src/plan/print.cpp: plans as text and as JSON.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "tilewright/plan.h"

namespace tilewright {
namespace {

using json = nlohmann::ordered_json;

std::string bytes_text(std::int64_t bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(kUnits)) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{:.4g} {}", value, kUnits[unit]);
}

std::string seconds_text(double seconds) {
  if (seconds >= 1) return fmt::format("{:.4g} s", seconds);
  if (seconds >= 1e-3) return fmt::format("{:.4g} ms", seconds * 1e3);
  return fmt::format("{:.4g} us", seconds * 1e6);
}

/// Words in lines of at most 100 columns, the first 11 of which are a label's.
std::string wrapped(std::string_view text) {
  constexpr std::size_t kIndent = 11;
  constexpr std::size_t kColumns = 100 - kIndent;
  std::string out;
  std::size_t column = 0;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    if (column > 0 && column + 1 + word.size() > kColumns) {
      out += '\n' + std::string(kIndent, ' ');
      column = 0;
    }
    if (column > 0) out += ' ';
    out += word;
    column += word.size() + (column > 0 ? 1 : 0);
  }
  return out;
}

std::string window_text(std::int64_t window) {
  return window < 0 ? std::string("unbounded") : fmt::format("{}", window);
}

std::string_view name(LengthKind kind) {
  switch (kind) {
    case LengthKind::fixed:
      return "fixed";
    case LengthKind::per_sequence:
      return "per_sequence";
    case LengthKind::cumulative:
      return "cumulative";
  }
  return "unknown";
}

std::string_view name(PerHead kind) {
  switch (kind) {
    case PerHead::none:
      return "none";
    case PerHead::per_head:
      return "per_head";
    case PerHead::per_batch_head:
      return "per_batch_head";
  }
  return "unknown";
}

std::string_view name(BiasKind kind) {
  switch (kind) {
    case BiasKind::none:
      return "none";
    case BiasKind::additive:
      return "additive";
    case BiasKind::boolean:
      return "boolean";
  }
  return "unknown";
}

json lengths_json(const Lengths& lengths) {
  json out = {{"kind", name(lengths.kind)}, {"max_tokens", lengths.max_tokens}};
  if (lengths.kind == LengthKind::cumulative) out["total_tokens"] = lengths.total_tokens;
  if (lengths.kind != LengthKind::fixed) {
    out["space"] = lengths.space == MemorySpace::host ? "host" : "device";
  }
  return out;
}

json problem_json(const AttentionProblem& problem) {
  const AttentionSpec& spec = problem.spec();
  return {{"batch", spec.batch},
          {"heads", spec.heads},
          {"kv_heads", spec.kv_heads},
          {"q_lengths", lengths_json(spec.q_lengths)},
          {"kv_lengths", lengths_json(spec.kv_lengths)},
          {"qk_dim", spec.qk_dim},
          {"v_dim", spec.v_dim},
          {"dtype", name(spec.dtype)},
          {"o_dtype", name(problem.o_dtype())},
          {"scale", problem.scale()},
          {"softcap", spec.softcap},
          {"causal", spec.mask.causal},
          {"diagonal", spec.mask.diagonal == Diagonal::bottom_right ? "bottom_right" : "top_left"},
          {"window_left_keys", spec.mask.window_left},
          {"window_right_keys", spec.mask.window_right},
          {"alibi", name(spec.alibi)},
          {"sinks", name(spec.sinks)},
          {"bias", name(spec.bias.kind)},
          {"flops", problem.flops()},
          {"visible_scores", problem.visible_scores()}};
}

json traffic_json(const Traffic& traffic) {
  json tensors = json::object();
  for (const TensorTraffic& t : traffic.tensors) {
    tensors[t.tensor] = {{"bytes_read", t.bytes_read}, {"bytes_written", t.bytes_written}};
  }
  return {{"bytes", traffic.bytes()},
          {"bytes_read", traffic.bytes_read()},
          {"bytes_written", traffic.bytes_written()},
          {"tensors", tensors}};
}

json time_json(const TimeModel& time) {
  if (time.total_seconds <= 0) return nullptr;
  return {{"total_seconds", time.total_seconds},
          {"matmul_seconds", time.matmul_seconds},
          {"exp_seconds", time.exp_seconds},
          {"memory_seconds", time.memory_seconds},
          {"tile_overhead_seconds", time.tile_overhead_seconds},
          {"tail_seconds", time.tail_seconds}};
}

std::string problem_text(const AttentionProblem& problem) {
  const AttentionSpec& spec = problem.spec();
  std::string text =
      fmt::format("batch {}, heads {}, kv heads {}, {} queries, {} keys, dim {}", spec.batch,
                  spec.heads, spec.kv_heads, problem.q_len(), problem.kv_len(), spec.qk_dim);
  if (spec.v_dim != spec.qk_dim) text += fmt::format(", v dim {}", spec.v_dim);
  text += fmt::format(", {}", name(spec.dtype));
  if (spec.mask.causal) {
    text += spec.mask.diagonal == Diagonal::bottom_right ? ", causal (bottom right)"
                                                         : ", causal (top left)";
  }
  if (spec.mask.window_left >= 0 || spec.mask.window_right >= 0) {
    text += fmt::format(", window {} left, {} right", window_text(spec.mask.window_left),
                        window_text(spec.mask.window_right));
  }
  return text;
}

std::string traffic_text(const Traffic& traffic) {
  std::string text = fmt::format("{} read, {} written", bytes_text(traffic.bytes_read()),
                                 bytes_text(traffic.bytes_written()));
  std::string parts;
  for (const TensorTraffic& t : traffic.tensors) {
    if (t.bytes_read + t.bytes_written == 0) continue;
    parts += fmt::format("{}{} {}", parts.empty() ? "" : ", ", t.tensor,
                         bytes_text(t.bytes_read + t.bytes_written));
  }
  return parts.empty() ? text : text + " (" + parts + ")";
}

}  // namespace

std::string_view name(Schedule schedule) noexcept {
  switch (schedule) {
    case Schedule::q_outer:
      return "q_outer";
    case Schedule::kv_outer:
      return "kv_outer";
    case Schedule::standard:
      return "standard";
  }
  return "unknown";
}

std::string_view name(KernelFamily family) noexcept {
  switch (family) {
    case KernelFamily::cpu_forward:
      return "cpu_forward";
    case KernelFamily::hopper_forward:
      return "hopper_forward";
    case KernelFamily::modelled:
      return "modelled";
  }
  return "unknown";
}

std::string to_text(const Plan& plan) {
  const ForwardPlan& forward = plan.forward();
  std::string out;
  const auto line = [&](std::string_view label, std::string_view value) {
    out += fmt::format("{:<11}{}\n", label, wrapped(value));
  };
  line("problem", problem_text(plan.problem));
  std::string how = fmt::format("{} on {}, {}, tile {}x{}", name(plan.family), plan.machine_id,
                                name(forward.schedule), forward.tile.q_rows, forward.tile.kv_rows);
  if (forward.stages > 1) how += fmt::format(", {} stages", forward.stages);
  if (forward.kv_splits > 1) how += fmt::format(", {} splits", forward.kv_splits);
  if (forward.packed_heads > 1) how += fmt::format(", {} heads a tile", forward.packed_heads);
  if (forward.p_in_shared) how += ", p in shared memory";
  how += fmt::format(", {} workers", forward.workers);
  if (!forward.isa.empty()) how += fmt::format(", {}", forward.isa);
  line("plan", how);
  std::vector<std::pair<std::string, std::int64_t>> stores;
  for (const FootprintItem& item : plan.footprint) {
    auto at = std::find_if(stores.begin(), stores.end(),
                           [&](const auto& store) { return store.first == item.store; });
    if (at == stores.end()) at = stores.insert(at, {item.store, 0});
    at->second += item.bytes;
  }
  for (const auto& [store, bytes] : stores) {
    std::string parts;
    std::int64_t capacity = 0;
    for (const FootprintItem& item : plan.footprint) {
      if (item.store != store) continue;
      parts += fmt::format("{}{} {}", parts.empty() ? "" : ", ", item.what, item.bytes);
      capacity = item.capacity_bytes;
    }
    const std::string have = capacity > 0 ? fmt::format(" of {}", capacity) : std::string();
    line("footprint", fmt::format("{} {}{} bytes ({})", store, bytes, have, parts));
  }
  if (plan.workspace_bytes > 0) line("workspace", bytes_text(plan.workspace_bytes));
  line("traffic", traffic_text(plan.traffic));
  line("off chip", traffic_text(plan.off_chip));
  const TimeModel& time = plan.time;
  if (time.total_seconds > 0) {
    line("time",
         fmt::format("{} modelled: products {}, exponentials {}, bytes {}, tiles {}, last "
                     "wave {}; {:.4g} TFLOP/s",
                     seconds_text(time.total_seconds), seconds_text(time.matmul_seconds),
                     seconds_text(time.exp_seconds), seconds_text(time.memory_seconds),
                     seconds_text(time.tile_overhead_seconds), seconds_text(time.tail_seconds),
                     plan.problem.flops() / time.total_seconds / 1e12));
  }
  line("reason", plan.reason);
  out.pop_back();
  return out;
}

std::string to_json(const Plan& plan) {
  const ForwardPlan& forward = plan.forward();
  json footprint = json::array();
  std::map<std::string, std::int64_t> stores;
  for (const FootprintItem& item : plan.footprint) {
    footprint.push_back({{"store", item.store}, {"what", item.what}, {"bytes", item.bytes}});
    footprint.back()["capacity_bytes"] =
        item.capacity_bytes > 0 ? json(item.capacity_bytes) : json(nullptr);
    stores[item.store] += item.bytes;
  }
  const json out = {{"machine", plan.machine_id},
                    {"family", name(plan.family)},
                    {"schedule", name(forward.schedule)},
                    {"q_rows", forward.tile.q_rows},
                    {"kv_rows", forward.tile.kv_rows},
                    {"stages", forward.stages},
                    {"kv_splits", forward.kv_splits},
                    {"packed_heads", forward.packed_heads},
                    {"workers", forward.workers},
                    {"isa", forward.isa},
                    {"deterministic", plan.deterministic},
                    {"problem", problem_json(plan.problem)},
                    {"footprint", footprint},
                    {"footprint_bytes", stores},
                    {"workspace_bytes", plan.workspace_bytes},
                    {"traffic", traffic_json(plan.traffic)},
                    {"off_chip", traffic_json(plan.off_chip)},
                    {"time", time_json(plan.time)},
                    {"reason", plan.reason}};
  return out.dump(2, ' ', false, json::error_handler_t::replace);
}

}  // namespace tilewright
