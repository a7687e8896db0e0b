// cli/bench.cpp: `tilewright bench`: times one problem, tiled against standard attention.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "check.h"
#include "command.h"
#include "files/array.h"
#include "files/buffer.h"
#include "flags.h"
#include "progress.h"
#include "random_file.h"
#include "report_page.h"
#include "text.h"
#include "tilewright/run.h"
#include "timed_run.h"

namespace tilewright::cli {
namespace {

using json = nlohmann::ordered_json;

struct BenchFlags {
  std::int64_t runs = 10;
  std::string against = "standard";
  std::shared_ptr<ShapeFlags> shape;
  std::shared_ptr<ScoreFlags> score;
  std::shared_ptr<PlanFlags> plan;
  std::shared_ptr<std::string> report;
  std::shared_ptr<bool> json;
};

// Random operands of one problem, allocated once for every run.
struct BenchData {
  std::vector<std::shared_ptr<std::byte>> buffers;
  AttentionTensors tensors;
};

Result<BenchData> make_data(const AttentionProblem& problem) {
  const AttentionSpec& spec = problem.spec();
  BenchData data;
  Status status;
  const auto allocate = [&](std::int64_t rows, std::int64_t heads, std::int64_t dim, DType dtype,
                            std::uint64_t seed) -> void* {
    const std::int64_t shape[] = {spec.batch, rows, heads, dim};
    const auto count = files::count_elements(shape);
    if (!status.ok()) return nullptr;
    if (!count || *count > (std::int64_t{1} << 58)) {
      status = {
          StatusCode::invalid_argument,
          fmt::format("shape is {}; accepted: one that memory holds", files::shape_text(shape))};
      return nullptr;
    }
    auto buffer = files::zeroed_buffer(static_cast<std::size_t>(*count) * size_bytes(dtype));
    if (!buffer.ok()) {
      status = buffer.status();
      return nullptr;
    }
    data.buffers.push_back(*buffer);
    if (seed != 0) fill_normal(buffer->get(), dtype, *count, seed);
    return buffer->get();
  };
  data.tensors.q = allocate(problem.q_len(), spec.heads, spec.qk_dim, spec.dtype, 1);
  data.tensors.k = allocate(problem.kv_len(), spec.kv_heads, spec.qk_dim, spec.dtype, 2);
  data.tensors.v = allocate(problem.kv_len(), spec.kv_heads, spec.v_dim, spec.dtype, 3);
  data.tensors.o = allocate(problem.q_len(), spec.heads, spec.v_dim, problem.o_dtype(), 0);
  data.tensors.lse = static_cast<float*>(allocate(problem.q_len(), spec.heads, 1, DType::f32, 0));
  if (!status.ok()) return status;
  return data;
}

// One schedule that is timed.
struct Contender {
  Plan plan;
  std::vector<double> seconds;
};

Result<Contender> make_contender(const AttentionSpec& spec, PlanFlags flags,
                                 const std::string& schedule) {
  // The other schedule gets the planner's tile: one that was asked for is the first one's.
  if (!schedule.empty()) {
    flags.schedule = schedule;
    flags.tile.clear();
  }
  const Result<Plan> plan = make_plan(spec, flags);
  if (!plan.ok()) return plan.status();
  const Status runnable = check_runnable(*plan);
  if (!runnable.ok()) return runnable;
  return Contender{*plan, {}};
}

const Figure& peak_of(const Machine& machine, DType dtype) {
  if (dtype == DType::bf16) return machine.bf16_flops_per_second;
  if (dtype == DType::f16) return machine.f16_flops_per_second;
  return machine.f32_flops_per_second;
}

// Interleaved, so that what else the machine does meets both; one run each first that is not timed.
Status time_all(std::vector<Contender>& contenders, const AttentionTensors& tensors,
                std::int64_t runs) {
  Progress progress("bench");
  for (std::int64_t i = -1; i < runs; ++i) {
    for (Contender& contender : contenders) {
      const Result<std::vector<double>> seconds = timed_runs(contender.plan, tensors, 1);
      if (!seconds.ok()) return seconds.status();
      if (i >= 0) contender.seconds.push_back(seconds->front());
    }
    progress.update(static_cast<double>(i + 2) / static_cast<double>(runs + 1));
  }
  return {};
}

// The median over pairs of the second's time by the first's.
double time_ratio(const std::vector<Contender>& contenders) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < contenders[0].seconds.size(); ++i) {
    ratios.push_back(contenders[1].seconds[i] / contenders[0].seconds[i]);
  }
  return median(ratios);
}

void print_json(const std::vector<Contender>& contenders, const Machine& machine) {
  json rows = json::array();
  for (const Contender& contender : contenders) {
    const Plan& plan = contender.plan;
    const ForwardPlan& forward = plan.forward();
    const double seconds = median(contender.seconds);
    const Figure& peak = peak_of(machine, plan.problem.spec().dtype);
    json row = {{"schedule", name(forward.schedule)},
                {"tile", fmt::format("{}x{}", forward.tile.q_rows, forward.tile.kv_rows)},
                {"isa", forward.isa},
                {"workers", forward.workers},
                {"median_seconds", seconds},
                {"all_seconds", contender.seconds},
                {"flops", plan.problem.flops()},
                {"gflop_per_second", plan.problem.flops() / seconds / 1e9},
                {"fraction_of_peak", nullptr},
                {"planned_traffic_bytes", plan.traffic.bytes()},
                {"workspace_bytes", plan.workspace_bytes}};
    if (peak.known()) row["fraction_of_peak"] = plan.problem.flops() / seconds / peak.value;
    rows.push_back(std::move(row));
  }
  json out = {{"machine", machine.name}, {"contenders", rows}};
  if (contenders.size() > 1) out["time_ratio_second_over_first"] = time_ratio(contenders);
  fmt::print("{}\n", out.dump(2, ' ', false, json::error_handler_t::replace));
}

void print_text(const std::vector<Contender>& contenders, const Machine& machine) {
  Table table({"schedule", "tile", "isa", "threads", "median", "fastest", "GFLOP/s", "of peak",
               "bytes moved"},
              3);
  for (const Contender& contender : contenders) {
    const Plan& plan = contender.plan;
    const ForwardPlan& forward = plan.forward();
    const double seconds = median(contender.seconds);
    const Figure& peak = peak_of(machine, plan.problem.spec().dtype);
    const double rate = plan.problem.flops() / seconds;
    const std::int64_t traffic = plan.traffic.bytes();
    table.add({std::string(name(forward.schedule)),
               fmt::format("{}x{}", forward.tile.q_rows, forward.tile.kv_rows), forward.isa,
               fmt::format("{}", forward.workers), seconds_text(seconds),
               seconds_text(*std::min_element(contender.seconds.begin(), contender.seconds.end())),
               fmt::format("{:.1f}", rate / 1e9),
               peak.known() ? fmt::format("{:.0f}%", 100 * rate / peak.value) : "not known",
               traffic > 0 ? bytes_text(static_cast<double>(traffic)) : "not known"});
  }
  fmt::print("{}", table.text());
  const Figure& peak = peak_of(machine, contenders[0].plan.problem.spec().dtype);
  if (peak.known()) {
    fmt::print("peak: {:.1f} GFLOP/s ({}: {})\n", peak.value / 1e9, name(peak.grade), peak.source);
  }
  fmt::print("bytes moved: planned, between a core's own cache and the memory behind it\n");
  if (contenders.size() > 1) {
    fmt::print("{} takes {:.2f} times as long as {} (median of {} interleaved pairs)\n",
               name(contenders[1].plan.forward().schedule), time_ratio(contenders),
               name(contenders[0].plan.forward().schedule), contenders[0].seconds.size());
  }
}

// The schedules that were asked for, timed on one problem.
Result<std::vector<Contender>> time_schedules(const AttentionSpec& spec, const BenchFlags& flags) {
  std::vector<Contender> contenders;
  for (const std::string& schedule : {std::string(), flags.against}) {
    if (schedule == "none") continue;
    Result<Contender> contender = make_contender(spec, *flags.plan, schedule);
    if (!contender.ok()) return contender.status();
    contenders.push_back(std::move(*contender));
  }
  const Result<BenchData> data = make_data(contenders[0].plan.problem);
  if (!data.ok()) return data.status();
  Status status = time_all(contenders, data->tensors, flags.runs);
  if (!status.ok()) return status;
  return contenders;
}

// The page shows shorter lengths as well: together they take less time than the one asked for.
Status write_page(ReportPage& page, const Machine& machine,
                  const std::vector<Contender>& contenders, const AttentionSpec& spec,
                  const BenchFlags& flags) {
  std::vector<TimedRun> runs;
  const auto add = [&runs](const std::vector<Contender>& timed) {
    for (const Contender& contender : timed) {
      runs.push_back({contender.plan, median(contender.seconds), std::nullopt});
    }
  };
  add(contenders);
  for (const AttentionSpec& shorter : shorter_specs(spec)) {
    const Result<std::vector<Contender>> timed = time_schedules(shorter, flags);
    if (!timed.ok()) return timed.status();
    add(*timed);
  }
  return page.write(machine, runs);
}

Status bench(const BenchFlags& flags) {
  AttentionSpec spec = flags.shape->spec();
  flags.score->apply(spec);
  const Result<Machine> machine = flags.plan->machine();
  if (!machine.ok()) return machine.status();
  Result<ReportPage> page = ReportPage::create(*flags.report);
  if (!page.ok()) return page.status();
  const Result<std::vector<Contender>> timed = time_schedules(spec, flags);
  if (!timed.ok()) return timed.status();
  const std::vector<Contender>& contenders = *timed;
  if (page->wanted()) {
    Status status = write_page(*page, *machine, contenders, spec, flags);
    if (!status.ok()) return status;
  }
  if (*flags.json) {
    print_json(contenders, *machine);
  } else {
    print_text(contenders, *machine);
  }
  return {};
}

}  // namespace

Command add_bench(CLI::App& app) {
  CLI::App* bench_app = app.add_subcommand("bench", "Time a problem, tiled against standard");
  bench_app->footer(
      R"(Inputs are random normal. Runs are interleaved; the first of each is not timed.

Examples:
  tilewright bench --q-len 4096 --heads 8 --dim 128
  tilewright bench --q-len 16384 --heads 1 --dim 64 --against none --runs 30 --json)");
  auto flags = std::make_shared<BenchFlags>();
  flags->shape = add_shape_flags(*bench_app);
  flags->score = add_score_flags(*bench_app);
  flags->plan = add_plan_flags(*bench_app);
  bench_app->add_option("--runs", flags->runs, "Timed runs")
      ->check(integer(1, 1'000'000))
      ->capture_default_str();
  std::vector<std::string> others = schedule_words();
  others.emplace_back("none");
  bench_app->add_option("--against", flags->against, "Schedule to compare with")
      ->check(one_of(others))
      ->capture_default_str();
  flags->report = add_report_flag(*bench_app);
  flags->json = add_json_flag(*bench_app);
  return {bench_app, [flags] { return bench(*flags); }, flags->json};
}

}  // namespace tilewright::cli
