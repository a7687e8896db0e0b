// report/tables.cpp: the figures as text and tables.
#include "report/tables.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/data.h"
#include "report/hierarchy.h"
#include "report/html.h"

namespace tilewright::report {
namespace {

constexpr const char* kNotMeasured = "not measured";
constexpr const char* kNotModelled = "not modelled";
constexpr const char* kNotKnown = "not known";

template <typename T, typename Text>
std::string optional_text(const std::optional<T>& value, Text text, const char* otherwise) {
  return value ? text(static_cast<double>(*value)) : otherwise;
}

std::string figure_text(const Figure& figure, std::string (*text)(double)) {
  return figure.known() ? text(figure.value) + dagger(figure) : kNotKnown;
}

std::string origin_text(const Figure& figure) {
  if (!figure.known()) return "";
  const std::string grade(name(figure.grade));
  return figure.source.empty() ? grade : grade + ": " + figure.source;
}

/// The entry to compare the subject with: another series at the same lengths.
const Entry* rival(const Contents& contents) {
  const Entry& subject = contents.entries.at(contents.subject);
  for (const Entry& entry : contents.entries) {
    const bool same = entry.plan.problem.q_len() == subject.plan.problem.q_len() &&
                      entry.plan.problem.kv_len() == subject.plan.problem.kv_len();
    if (same && entry.series != subject.series) return &entry;
  }
  return nullptr;
}

std::string ratio_text(double mine, double theirs, const std::string& other) {
  if (!(mine > 0) || !(theirs > 0)) return "";
  const double ratio = theirs / mine;
  if (ratio >= 1.05) return fmt::format("{:.3g} times less than {}", ratio, other);
  if (ratio <= 0.95) return fmt::format("{:.3g} times as much as {}", 1 / ratio, other);
  return fmt::format("about the same as {}", other);
}

/// One quantity of the subject, and of its rival where both have it.
std::string card(const std::string& title, const std::string& origin,
                 const std::optional<double>& mine, const std::optional<double>& theirs,
                 const std::string& other, std::string (*text)(double)) {
  if (!mine) return "";
  std::string out = fmt::format(
      "<div class=\"card\"><h3>{} <span class=\"tag\">{}</span></h3><p class=\"big\">{}</p>",
      escape(title), escape(origin), escape(text(*mine)));
  if (theirs) {
    out += fmt::format("<p>{}<br><span class=\"quiet\">{}: {}</span></p>",
                       escape(ratio_text(*mine, *theirs, other)), escape(other),
                       escape(text(*theirs)));
  }
  return out + "</div>\n";
}

std::optional<double> number(const std::optional<std::int64_t>& value) {
  if (!value) return std::nullopt;
  return static_cast<double>(*value);
}

}  // namespace

std::string comparison_cards(const Contents& contents) {
  const Entry& subject = contents.entries.at(contents.subject);
  const Entry* other = rival(contents);
  const std::string label = other != nullptr ? other->series : "";
  const auto theirs = [&](const auto& quantity) {
    return other != nullptr ? quantity(*other) : std::optional<double>{};
  };
  const auto one = [&](const char* title, const char* origin, const auto& quantity,
                       std::string (*text)(double)) {
    return card(title, origin, quantity(subject), theirs(quantity), label, text);
  };
  const auto measured = [](const Entry& entry) { return entry.measured_seconds; };
  const auto modelled = [](const Entry& entry) { return modelled_seconds(entry.plan); };
  const auto bytes = [](const Entry& entry) { return traffic_bytes(entry.plan); };
  const auto peak = [](const Entry& entry) { return number(entry.measured_memory_bytes); };
  const auto planned = [](const Entry& entry) {
    return std::optional<double>(planned_memory_bytes(entry.plan));
  };
  return (subject.measured_seconds ? one("Time", "measured", measured, seconds_text)
                                   : one("Time", "modelled", modelled, seconds_text)) +
         one("Bytes to and from fast memory", "planned", bytes, bytes_text) +
         (subject.measured_memory_bytes ? one("Memory", "measured", peak, bytes_text)
                                        : one("Memory", "planned", planned, bytes_text));
}

std::string measurements_table(const Contents& contents) {
  Table table("Every schedule at every length",
              {"schedule", "key tokens", "tile", "time, measured", "time, modelled",
               "bytes to and from fast memory, planned", "off chip, planned", "memory, measured",
               "memory, planned"});
  for (const Entry& entry : contents.entries) {
    const Tile& tile = entry.plan.forward().tile;
    table.add({entry.series, count_text(entry.plan.problem.kv_len()),
               fmt::format("{} x {}", tile.q_rows, tile.kv_rows),
               optional_text(entry.measured_seconds, seconds_text, kNotMeasured),
               optional_text(modelled_seconds(entry.plan), seconds_text, kNotModelled),
               optional_text(traffic_bytes(entry.plan), bytes_text, kNotModelled),
               optional_text(off_chip_bytes(entry.plan), bytes_text, kNotModelled),
               optional_text(entry.measured_memory_bytes, bytes_text, kNotMeasured),
               bytes_text(planned_memory_bytes(entry.plan))});
  }
  return table.html();
}

std::string machine_table(const Contents& contents) {
  const Machine& machine = contents.machine;
  const Plan& plan = contents.entries.at(contents.subject).plan;
  Table memories("Memories, nearest to the arithmetic first",
                 {"memory", "one for each", "capacity", "from", "rate", "from"});
  for (const auto& level : hierarchy(machine, plan)) {
    for (const Box& box : level) {
      memories.add({box.name, box.unit.empty() ? "device" : box.unit,
                    figure_text(box.capacity_bytes, bytes_text), origin_text(box.capacity_bytes),
                    figure_text(box.rate, rate_text), origin_text(box.rate)});
    }
  }
  Table rates("Rates of the whole device", {"what", "rate", "from"});
  const auto rate = [&](const char* what, const Figure& figure) {
    if (figure.known()) rates.add({what, figure_text(figure, flops_text), origin_text(figure)});
  };
  rate("f32", machine.f32_flops_per_second);
  rate("bf16", machine.bf16_flops_per_second);
  rate("f16", machine.f16_flops_per_second);
  return memories.html() + rates.html();
}

std::string walk_table(const std::optional<Walk>& walk) {
  if (!walk) return "";
  Table table("The walk: key tiles that each query tile visits",
              {"query tile", "first query", "visits key tiles", "skips", "bytes so far"});
  std::size_t step = 0;
  for (std::size_t q_tile = 0; q_tile < walk->q_tiles.size(); ++q_tile) {
    const schedule::TileWalk& tiles = walk->q_tiles[q_tile];
    while (walk->steps[step].action != Action::store_o) ++step;
    const auto visited = tiles.tiles() == 0 ? std::string("none")
                                            : fmt::format("{} to {}", tiles.first, tiles.end - 1);
    table.add({fmt::format("{}", q_tile),
               count_text(static_cast<std::int64_t>(q_tile) * walk->tile.q_rows), visited,
               count_text(walk->kv_tiles() - tiles.tiles()),
               bytes_text(static_cast<double>(walk->steps[step].bytes_so_far))});
    ++step;
  }
  return table.html();
}

std::string footprint_table(const Plan& plan) {
  Table table("Footprint", {"buffer", "store", "bytes"});
  for (const FootprintItem& item : plan.footprint) {
    table.add({item.what, item.store, bytes_text(static_cast<double>(item.bytes))});
  }
  return table.html();
}

std::string traffic_table(const Plan& plan) {
  const auto table_of = [](const std::string& caption, const Traffic& traffic) {
    Table table(caption, {"tensor", "read", "written"});
    const auto bytes = [](std::int64_t count) { return bytes_text(static_cast<double>(count)); };
    for (const TensorTraffic& tensor : traffic.tensors) {
      table.add({tensor.tensor, bytes(tensor.bytes_read), bytes(tensor.bytes_written)});
    }
    if (!traffic.tensors.empty()) {
      table.add({"all", bytes(traffic.bytes_read()), bytes(traffic.bytes_written())});
    }
    return table.html();
  };
  return table_of("Bytes to and from fast memory, planned", plan.traffic) +
         table_of("Of these off chip, planned", plan.off_chip);
}

std::string time_table(const Entry& entry) {
  if (!modelled_seconds(entry.plan)) return "";
  const TimeModel& time = entry.plan.time;
  Table table("Modelled time; terms overlap, so the total is not their sum", {"term", "time"});
  table.add({"products", seconds_text(time.matmul_seconds)});
  table.add({"exponentials", seconds_text(time.exp_seconds)});
  table.add({"bytes", seconds_text(time.memory_seconds)});
  table.add({"each tile's overhead", seconds_text(time.tile_overhead_seconds)});
  table.add({"idle at the end", seconds_text(time.tail_seconds)});
  table.add({"total", seconds_text(time.total_seconds)});
  table.add({"measured", optional_text(entry.measured_seconds, seconds_text, kNotMeasured)});
  return table.html();
}

std::string sweep_table(const std::vector<SweepPoint>& sweep) {
  Table table("Tiles tried", {"tile", "varied", "fullest store", "time, modelled", "time, measured",
                              "bytes to and from fast memory"});
  for (const SweepPoint& point : sweep) {
    std::vector<std::string> row = {fmt::format("{} x {}", point.tile.q_rows, point.tile.kv_rows),
                                    point.varied};
    if (!point.fits) {
      row.insert(row.end(), {"refused", "-", "-", "-"});
    } else {
      row.push_back(point.fullest_store + ", " +
                    bytes_text(static_cast<double>(point.fullest_bytes)));
      row.push_back(optional_text(point.modelled_seconds, seconds_text, kNotModelled));
      row.push_back(optional_text(point.measured_seconds, seconds_text, kNotMeasured));
      row.push_back(optional_text(point.traffic_bytes, bytes_text, kNotModelled));
    }
    table.add(std::move(row));
  }
  return table.html();
}

std::string plan_list(const Plan& plan) {
  const ForwardPlan& forward = plan.forward();
  const AttentionSpec& spec = plan.problem.spec();
  std::string out = "<dl>";
  const auto term = [&](const char* what, const std::string& value) {
    if (!value.empty())
      out += fmt::format("<div><dt>{}</dt><dd>{}</dd></div>", what, escape(value));
  };
  term("problem", fmt::format("{} x {} tokens, {} heads over {} kv heads, dim {}{}, {}{}",
                              count_text(plan.problem.q_len()), count_text(plan.problem.kv_len()),
                              spec.batch * spec.heads, spec.batch * spec.kv_heads, spec.qk_dim,
                              spec.v_dim != spec.qk_dim ? fmt::format(" and {}", spec.v_dim) : "",
                              name(spec.dtype), spec.mask.causal ? ", causal" : ""));
  term("schedule", fmt::format("{}, by {}", name(forward.schedule), name(plan.family)));
  term("tile", fmt::format("{} queries x {} keys", forward.tile.q_rows, forward.tile.kv_rows));
  if (forward.stages > 1) term("stages", fmt::format("{} key tiles in flight", forward.stages));
  if (forward.packed_heads > 1) {
    term("packed heads", fmt::format("{} share each query tile", forward.packed_heads));
  }
  if (forward.kv_splits > 1) term("splits", fmt::format("{} of the key range", forward.kv_splits));
  term("workers", count_text(forward.workers));
  term("instructions", forward.isa);
  term("scratch", plan.workspace_bytes > 0
                      ? bytes_text(static_cast<double>(plan.workspace_bytes)) + " off chip"
                      : "none off chip");
  term("why", plan.reason);
  return out + "</dl>";
}

}  // namespace tilewright::report
