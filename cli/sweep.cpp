// cli/sweep.cpp: `tilewright sweep`: time and traffic against tile size, with the limit marked.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <random>

#include "check.h"
#include "command.h"
#include "flags.h"
#include "report_page.h"
#include "text.h"
#include "tilewright/run.h"

namespace tilewright::cli {
namespace {

using json = nlohmann::ordered_json;

constexpr std::int64_t kSides[] = {16,  32,  48,  64,   96,   128,  192, 256,
                                   384, 512, 768, 1024, 1536, 2048, 4096};

/// One tile: its plan, or why there is none.
struct Point {
  Tile tile;
  std::optional<Plan> plan;
  Status refusal;
  double measured_seconds = 0;
};

/// Contiguous operands of a problem, drawn once.
class Operands {
 public:
  explicit Operands(const AttentionProblem& problem) {
    const AttentionSpec& spec = problem.spec();
    const auto element = static_cast<std::int64_t>(size_bytes(spec.dtype));
    const std::int64_t queries = spec.batch * spec.heads * problem.q_len();
    const std::int64_t keys = spec.batch * spec.kv_heads * problem.kv_len();
    std::mt19937 random(1);
    // Bit patterns of small numbers: 1 and a little, alternating in sign, in every type.
    const auto fill = [&](std::vector<std::uint16_t>& data, std::int64_t count) {
      data.resize(static_cast<std::size_t>(count * element / 2));
      for (std::uint16_t& word : data) {
        word = static_cast<std::uint16_t>(0x3c00 + (random() & 0x80ff));
      }
    };
    fill(q_, queries * spec.qk_dim);
    fill(k_, keys * spec.qk_dim);
    fill(v_, keys * spec.v_dim);
    o_.resize(static_cast<std::size_t>(queries * spec.v_dim * 2));
  }
  AttentionTensors tensors() {
    AttentionTensors t;
    t.q = q_.data();
    t.k = k_.data();
    t.v = v_.data();
    t.o = o_.data();
    return t;
  }

 private:
  std::vector<std::uint16_t> q_, k_, v_, o_;
};

/// Best of some runs, in rounds over all tiles so that a busy moment does not hit one alone.
Status measure(const AttentionProblem& problem, std::vector<Point>& points) {
  Operands operands(problem);
  for (int round = 0; round < 3; ++round) {
    for (Point& point : points) {
      if (!point.plan) continue;
      const auto start = std::chrono::steady_clock::now();
      Status status = run(*point.plan, operands.tensors());
      if (!status.ok()) return status;
      const double seconds =
          std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      if (point.measured_seconds == 0 || seconds < point.measured_seconds) {
        point.measured_seconds = seconds;
      }
    }
  }
  return {};
}

std::string bar(double share, std::size_t width) {
  const auto length = static_cast<std::size_t>(share * static_cast<double>(width) + 0.5);
  return std::string(std::min(std::max<std::size_t>(length, 1), width), '#');
}

double seconds_of(const Point& point) {
  return point.measured_seconds > 0 ? point.measured_seconds : point.plan->time.total_seconds;
}

void print_points(const std::vector<Point>& points, std::string_view varied, bool measured) {
  double most = 0;
  double least = 0;
  for (const Point& point : points) {
    if (!point.plan) continue;
    most = std::max(most, seconds_of(point));
    if (least == 0 || seconds_of(point) < least) least = seconds_of(point);
  }
  fmt::print("{} ({} time; # is the least)\n", varied, measured ? "measured" : "modelled");
  bool limit_marked = false;
  for (const Point& point : points) {
    const std::string tile = fmt::format("{}x{}", point.tile.q_rows, point.tile.kv_rows);
    if (!point.plan) {
      if (!limit_marked)
        fmt::print("{:>9}  and others are refused: {}\n", tile, point.refusal.message());
      limit_marked = true;
      continue;
    }
    std::int64_t fullest = 0;
    for (const FootprintItem& item : point.plan->footprint) {
      std::int64_t bytes = 0;
      for (const FootprintItem& other : point.plan->footprint) {
        if (other.store == item.store) bytes += other.bytes;
      }
      fullest = std::max(fullest, bytes);
    }
    const double seconds = seconds_of(point);
    fmt::print("{:>9}  {:>9}  {:>9} moved  {:>9} on chip  {}{}\n", tile,
               seconds > 0 ? seconds_text(seconds) : "-",
               bytes_text(static_cast<double>(point.plan->traffic.bytes())),
               bytes_text(static_cast<double>(fullest)),
               most > 0 ? bar(seconds / most, 40) : std::string(),
               seconds > 0 && seconds == least ? "  least" : "");
  }
  fmt::print("\n");
}

json points_json(const std::vector<Point>& points) {
  json rows = json::array();
  for (const Point& point : points) {
    json row = {{"q_rows", point.tile.q_rows},
                {"kv_rows", point.tile.kv_rows},
                {"fits", point.plan.has_value()}};
    if (point.plan) {
      row["bytes"] = point.plan->traffic.bytes();
      row["modelled_seconds"] = point.plan->time.total_seconds;
      if (point.measured_seconds > 0) row["measured_seconds"] = point.measured_seconds;
      json stores = json::object();
      for (const FootprintItem& item : point.plan->footprint) {
        stores[item.store] = stores.value(item.store, std::int64_t{0}) + item.bytes;
      }
      row["footprint_bytes"] = stores;
    } else {
      row["refusal"] = point.refusal.message();
    }
    rows.push_back(row);
  }
  return rows;
}

std::vector<Point> plan_points(const AttentionProblem& problem, const Machine& machine,
                               const PlanOptions& asked, const std::vector<Tile>& tiles) {
  std::vector<Point> points;
  for (const Tile& tile : tiles) {
    PlanOptions options = asked;
    options.tile = tile;
    Point point{tile, std::nullopt, {}, 0};
    Result<Plan> made = plan(problem, machine, options);
    if (made.ok()) {
      point.plan = *std::move(made);
    } else {
      point.refusal = made.status();
    }
    points.push_back(std::move(point));
  }
  return points;
}

/// The sides that are swept over, the planner's own among them.
std::vector<std::int64_t> with_side(std::int64_t own) {
  std::vector<std::int64_t> sides(std::begin(kSides), std::end(kSides));
  if (std::find(sides.begin(), sides.end(), own) == sides.end()) sides.push_back(own);
  std::sort(sides.begin(), sides.end());
  return sides;
}

/// For the page: a point with the store that its tile fills most.
report::SweepPoint shown(const Machine& machine, const Point& point, const std::string& varied,
                         std::int64_t side) {
  report::SweepPoint out;
  out.varied = varied;
  out.side = side;
  out.tile = point.tile;
  out.fits = point.plan.has_value();
  if (!out.fits) return out;
  double fullest = 0;
  for (const Store& store : machine.stores) {
    std::int64_t bytes = 0;
    for (const FootprintItem& item : point.plan->footprint) {
      if (item.store == store.name) bytes += item.bytes;
    }
    const double capacity = store.capacity_bytes.known() ? store.capacity_bytes.value : 0;
    if (capacity == 0 || static_cast<double>(bytes) / capacity <= fullest) continue;
    fullest = static_cast<double>(bytes) / capacity;
    out.fullest_store = store.name;
    out.fullest_bytes = bytes;
  }
  if (point.plan->time.total_seconds > 0) out.modelled_seconds = point.plan->time.total_seconds;
  if (point.measured_seconds > 0) out.measured_seconds = point.measured_seconds;
  out.traffic_bytes = point.plan->traffic.bytes();
  return out;
}

/// The chosen tile's time, where it was measured among the others.
std::optional<double> chosen_seconds(const std::vector<Point>& points, const Tile& chosen) {
  for (const Point& point : points) {
    if (point.tile == chosen && point.measured_seconds > 0) return point.measured_seconds;
  }
  return std::nullopt;
}

Status sweep(const AttentionSpec& spec, const PlanFlags& flags, bool measuring, bool as_json,
             const std::string& report_path) {
  Result<ReportPage> page = ReportPage::create(report_path);
  if (!page.ok()) return page.status();
  const Result<AttentionProblem> problem = AttentionProblem::create(spec);
  if (!problem.ok()) return problem.status();
  const Result<Machine> machine = flags.machine();
  if (!machine.ok()) return machine.status();
  if (measuring && machine->id != "cpu") {
    return {StatusCode::invalid_argument,
            fmt::format("--measure was given for device {}; accepted: auto, cpu", machine->id)};
  }
  PlanOptions options = flags.options();
  options.tile.reset();
  const Result<Plan> best = plan(*problem, *machine, options);
  if (!best.ok()) return best.status();
  const Tile chosen = best->forward().tile;
  std::vector<Tile> by_q, by_kv;
  for (const std::int64_t side : with_side(chosen.q_rows)) by_q.push_back({side, chosen.kv_rows});
  for (const std::int64_t side : with_side(chosen.kv_rows)) by_kv.push_back({chosen.q_rows, side});
  std::vector<Point> q_points = plan_points(*problem, *machine, options, by_q);
  std::vector<Point> kv_points = plan_points(*problem, *machine, options, by_kv);
  if (measuring) {
    Status status = measure(*problem, q_points);
    if (status.ok()) status = measure(*problem, kv_points);
    if (!status.ok()) return status;
  }
  if (page->wanted()) {
    std::vector<report::SweepPoint> points;
    for (const Point& p : q_points) {
      points.push_back(shown(*machine, p, "query rows", p.tile.q_rows));
    }
    for (const Point& p : kv_points) points.push_back(shown(*machine, p, "keys", p.tile.kv_rows));
    Status status = page->write(*machine, {{*best, chosen_seconds(q_points, chosen), std::nullopt}},
                                {}, std::move(points));
    if (!status.ok()) return status;
  }
  if (as_json) {
    const json out = {{"chosen", json::parse(to_json(*best))},
                      {"by_q_rows", points_json(q_points)},
                      {"by_kv_rows", points_json(kv_points)}};
    fmt::print("{}\n", out.dump(2, ' ', false, json::error_handler_t::replace));
    return {};
  }
  fmt::print("{}\n\n", to_text(*best));
  print_points(q_points, fmt::format("query rows, by {} keys", best->forward().tile.kv_rows),
               measuring);
  print_points(kv_points, fmt::format("keys, by {} query rows", best->forward().tile.q_rows),
               measuring);
  return {};
}

}  // namespace

Command add_sweep(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "sweep", "Time and traffic against tile size: too large is refused, too small costs");
  command->footer(R"(Examples:
  tilewright sweep --measure --q-len 2048          on this CPU
  tilewright sweep --device a100_80 --dtype bf16   modelled
  tilewright sweep --dim 64 --report page.html     drawn, with the limit marked)");
  ShapeFlags defaults;
  const auto shape = add_shape_flags(*command, defaults);
  const auto score = add_score_flags(*command);
  const auto flags = add_plan_flags(*command, Devices::profiles);
  const auto measuring = std::make_shared<bool>(false);
  command->add_flag("--measure", *measuring, "Run every tile that fits on this CPU");
  const auto report = add_report_flag(*command);
  const auto json_flag = add_json_flag(*command);
  return {command,
          [=]() -> Status {
            AttentionSpec spec = shape->spec();
            score->apply(spec);
            return sweep(spec, *flags, *measuring, *json_flag, *report);
          },
          json_flag};
}

}  // namespace tilewright::cli
