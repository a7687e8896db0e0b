// cli/report_page.cpp: --report FILE.
#include "report_page.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <limits>
#include <utility>
#include <vector>

#include "measure.h"
#include "reference/head.h"
#include "report/planned.h"
#include "report/report.h"

namespace tilewright::cli {
namespace {

// The time that a plan takes by what is known of the machine now; what it does stays as it was.
void model_again(Plan& plan, const Machine& machine) {
  const ForwardPlan& forward = plan.forward();
  PlanOptions options;
  options.tile = forward.tile;
  options.schedule = forward.schedule;
  options.kv_splits = forward.kv_splits;
  options.workers = forward.workers;
  options.isa = forward.isa;
  const Result<Plan> modelled = tilewright::plan(plan.problem, machine, options);
  if (modelled.ok()) plan.time = modelled->time;
}

}  // namespace

std::shared_ptr<std::string> add_report_flag(CLI::App& app) {
  auto path = std::make_shared<std::string>();
  app.add_option("--report", *path,
                 "Also write an HTML page: memories, roofline, charts, the tile walk, the plan")
      ->type_name("FILE");
  return path;
}

Result<ReportPage> ReportPage::create(const std::string& path) {
  ReportPage page;
  if (path.empty()) return page;
  Result<files::OutputFile> file = files::OutputFile::create(path, 0);
  if (!file.ok()) {
    return Status{file.status().code(), fmt::format("--report: {}", file.status().message())};
  }
  page.file_.emplace(std::move(*file));
  return page;
}

Status ReportPage::write(const Machine& machine, const std::vector<TimedRun>& runs, ScoreOf score,
                         std::vector<report::SweepPoint> sweep) {
  if (!file_) return {};
  report::Contents contents;
  const AttentionProblem problem = runs.front().plan.problem;
  contents.heading = report::describe(problem);
  contents.machine = machine;
  contents.sweep = std::move(sweep);
  contents.score = std::move(score);
  for (const TimedRun& run : runs) {
    contents.entries.push_back({report::series_name(run.plan.forward().schedule), run.plan,
                                run.seconds, run.peak_memory_bytes});
  }
  if (machine.id == this_cpu().id) {
    contents.machine = measure(machine).machine;
    for (report::Entry& entry : contents.entries) model_again(entry.plan, contents.machine);
  }
  report::add_planned(contents, report::lengths_around(problem.kv_len()));
  const std::string html = report::page(contents);
  Status status = file_->write(html.data(), html.size());
  return status.ok() ? file_->commit() : status;
}

std::vector<AttentionSpec> shorter_specs(const AttentionSpec& spec) {
  std::vector<AttentionSpec> out;
  for (const std::int64_t tokens : report::lengths_around(spec.kv_lengths.max_tokens)) {
    if (tokens < spec.kv_lengths.max_tokens) out.push_back(report::at_length(spec, tokens));
  }
  return out;
}

ScoreOf first_head_scores(const AttentionProblem& problem, const AttentionTensors& tensors) {
  const AttentionSpec& spec = problem.spec();
  const bool fixed = spec.q_lengths.kind == LengthKind::fixed &&
                     spec.kv_lengths.kind == LengthKind::fixed && spec.batch > 0;
  if (!fixed) return {};
  struct Cached {
    reference::Head head;
    std::int64_t query = -1;
    std::vector<double> row;
  };
  const auto cached = std::make_shared<Cached>();
  cached->head = reference::gather_head(problem, tensors, 0, 0);
  return [cached](std::int64_t query, std::int64_t key) {
    if (cached->query != query) {
      cached->query = query;
      cached->row.assign(static_cast<std::size_t>(cached->head.keys.tokens),
                         -std::numeric_limits<double>::infinity());
      for (const auto& score : reference::scores<double>(cached->head, query)) {
        cached->row[static_cast<std::size_t>(score.key)] = score.value;
      }
    }
    return cached->row[static_cast<std::size_t>(key)];
  };
}

}  // namespace tilewright::cli
