// report/data.cpp: writes the figures as JSON.
#include "report/data.h"

#include <nlohmann/json.hpp>

#include "report/hierarchy.h"

namespace tilewright::report {
namespace {

using json = nlohmann::ordered_json;

template <typename T>
json optional_json(const std::optional<T>& value) {
  return value ? json(*value) : json(nullptr);
}

json figure_json(const Figure& figure) {
  if (!figure.known()) return nullptr;
  return {{"value", figure.value}, {"grade", name(figure.grade)}, {"source", figure.source}};
}

json items_json(const std::vector<FootprintItem>& items) {
  json out = json::array();
  for (const FootprintItem& item : items) {
    out.push_back({{"store", item.store}, {"what", item.what}, {"bytes", item.bytes}});
  }
  return out;
}

json machine_json(const Machine& machine, const Plan& plan) {
  json levels = json::array();
  for (const auto& boxes : hierarchy(machine, plan)) {
    json level = json::array();
    for (const Box& box : boxes) {
      level.push_back({{"name", box.name},
                       {"unit", box.unit},
                       {"capacity_bytes", figure_json(box.capacity_bytes)},
                       {"bytes_per_second", figure_json(box.rate)},
                       {"towards", box.towards},
                       {"holds", items_json(box.holds)}});
    }
    levels.push_back(level);
  }
  json roofs = json::array();
  const auto roof = [&](const std::string& label, const Figure& rate, double times) {
    if (!rate.known()) return;
    json figure = figure_json(rate);
    figure["value"] = rate.value * times;
    roofs.push_back({{"label", label}, {"bytes_per_second", figure}});
  };
  roof("memory", machine.memory_bytes_per_second, 1);
  for (const Link& link : machine.links) {
    if (link.from == "cache" && link.unit == "device") roof("cache", link.bytes_per_second, 1);
  }
  const Figure& peak = peak_flops(machine, plan);
  return {{"name", machine.name},
          {"units", machine.units},
          {"unit_kind", machine.unit_kind},
          {"levels", levels},
          {"roofs", roofs},
          {"peak_flops_per_second", figure_json(peak)},
          {"dtype", name(plan.problem.spec().dtype)}};
}

json series_json(const std::vector<Entry>& entries) {
  json out = json::array();
  const auto series = [&](const std::string& label) -> json& {
    for (json& one : out) {
      if (one["name"] == label) return one;
    }
    out.push_back({{"name", label}, {"points", json::array()}});
    return out.back();
  };
  for (const Entry& entry : entries) {
    series(entry.series)["points"].push_back(
        {{"tokens", entry.plan.problem.kv_len()},
         {"flops", entry.plan.problem.flops()},
         {"tile", {entry.plan.forward().tile.q_rows, entry.plan.forward().tile.kv_rows}},
         {"traffic_bytes", optional_json(traffic_bytes(entry.plan))},
         {"off_chip_bytes", optional_json(off_chip_bytes(entry.plan))},
         {"planned_memory_bytes", planned_memory_bytes(entry.plan)},
         {"measured_memory_bytes", optional_json(entry.measured_memory_bytes)},
         {"modelled_seconds", optional_json(modelled_seconds(entry.plan))},
         {"measured_seconds", optional_json(entry.measured_seconds)}});
  }
  return out;
}

json plan_json(const Entry& subject) {
  const Plan& plan = subject.plan;
  json time = nullptr;
  if (modelled_seconds(plan)) {
    time = {{"matmul_seconds", plan.time.matmul_seconds},
            {"exp_seconds", plan.time.exp_seconds},
            {"memory_seconds", plan.time.memory_seconds},
            {"tile_overhead_seconds", plan.time.tile_overhead_seconds},
            {"tail_seconds", plan.time.tail_seconds},
            {"total_seconds", plan.time.total_seconds},
            {"measured_seconds", optional_json(subject.measured_seconds)}};
  }
  return {{"series", subject.series},
          {"tile", {plan.forward().tile.q_rows, plan.forward().tile.kv_rows}},
          {"footprint", items_json(plan.footprint)},
          {"time", time}};
}

json walk_json(const Walk& walk) {
  json q_tiles = json::array();
  for (const schedule::TileWalk& tiles : walk.q_tiles) {
    q_tiles.push_back({tiles.first, tiles.end, tiles.unmasked_first, tiles.unmasked_end});
  }
  json steps = json::array();
  for (const Step& step : walk.steps) {
    steps.push_back({static_cast<int>(step.action), step.q_tile, step.kv_tile, step.bytes_so_far,
                     optional_json(step.tile_max), optional_json(step.max), step.rescale,
                     step.sum});
  }
  return {{"q_len", walk.rule.q_len},
          {"kv_len", walk.rule.kv_len},
          {"low", walk.rule.low},
          {"high", walk.rule.high},
          {"heads", walk.heads},
          {"q_rows", walk.tile.q_rows},
          {"kv_rows", walk.tile.kv_rows},
          {"through_cache", walk.hand_off.s || walk.hand_off.p || walk.hand_off.o},
          {"kv_splits", walk.kv_splits},
          {"same_lengths", walk.same_lengths},
          {"example_scores", walk.example_scores},
          {"standard_bytes", walk.standard_bytes},
          {"q_tiles", q_tiles},
          {"steps", steps}};
}

json sweep_json(const std::vector<SweepPoint>& sweep) {
  json points = json::array();
  for (const SweepPoint& point : sweep) {
    points.push_back({{"varied", point.varied},
                      {"side", point.side},
                      {"tile", {point.tile.q_rows, point.tile.kv_rows}},
                      {"fits", point.fits},
                      {"fullest_store", point.fullest_store},
                      {"fullest_bytes", point.fullest_bytes},
                      {"modelled_seconds", optional_json(point.modelled_seconds)},
                      {"measured_seconds", optional_json(point.measured_seconds)},
                      {"traffic_bytes", optional_json(point.traffic_bytes)}});
  }
  return points;
}

}  // namespace

double planned_memory_bytes(const Plan& plan) {
  const AttentionSpec& spec = plan.problem.spec();
  const auto tokens = [&](const Lengths& lengths) {
    return static_cast<double>(lengths.kind == LengthKind::cumulative
                                   ? lengths.total_tokens
                                   : spec.batch * lengths.max_tokens);
  };
  const auto number = [](auto value) { return static_cast<double>(value); };
  const double element = number(size_bytes(spec.dtype));
  const double q_rows = tokens(spec.q_lengths) * number(spec.heads);
  const double kv_rows = tokens(spec.kv_lengths) * number(spec.kv_heads);
  return q_rows * number(spec.qk_dim) * element +
         kv_rows * number(spec.qk_dim + spec.v_dim) * element +
         q_rows *
             (number(spec.v_dim) * number(size_bytes(plan.problem.o_dtype())) + sizeof(float)) +
         number(plan.workspace_bytes);
}

std::optional<double> traffic_bytes(const Plan& plan) {
  if (plan.traffic.tensors.empty()) return std::nullopt;
  return static_cast<double>(plan.traffic.bytes());
}

std::optional<double> off_chip_bytes(const Plan& plan) {
  if (plan.off_chip.tensors.empty()) return std::nullopt;
  return static_cast<double>(plan.off_chip.bytes());
}

std::optional<double> modelled_seconds(const Plan& plan) {
  if (!(plan.time.total_seconds > 0)) return std::nullopt;
  return plan.time.total_seconds;
}

const Figure& peak_flops(const Machine& machine, const Plan& plan) {
  switch (plan.problem.spec().dtype) {
    case DType::bf16:
      return machine.bf16_flops_per_second;
    case DType::f16:
      return machine.f16_flops_per_second;
    default:
      return machine.f32_flops_per_second;
  }
}

std::string page_data(const Contents& contents, const std::optional<Walk>& walk) {
  const Entry& subject = contents.entries.at(contents.subject);
  const json data = {{"machine", machine_json(contents.machine, subject.plan)},
                     {"series", series_json(contents.entries)},
                     {"plan", plan_json(subject)},
                     {"walk", walk ? walk_json(*walk) : json(nullptr)},
                     {"sweep", sweep_json(contents.sweep)}};
  std::string out;
  for (const char c : data.dump(-1, ' ', false, json::error_handler_t::replace)) {
    if (c == '<') {
      out += "\\u003c";  // neither "</script" nor "<!--" can occur
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace tilewright::report
