// cli/demo.cpp: `tilewright demo`: standard and tiled attention side by side, from real files.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "check.h"
#include "child_process.h"
#include "command.h"
#include "demo_report.h"
#include "files/error_text.h"
#include "files/npy.h"
#include "progress.h"
#include "random_file.h"
#include "reference/attention.h"
#include "report_page.h"
#include "text.h"

namespace tilewright::cli {
namespace {

using json = nlohmann::ordered_json;
namespace fs = std::filesystem;

struct DemoFlags {
  std::string directory, lengths = "1024,4096,16384,131072";
  bool quick = false;
  std::int64_t budget_seconds = 90, threads = 0;
  std::shared_ptr<std::string> report;
  std::shared_ptr<bool> json;
};

// Set by Ctrl-C and the like, so that the temporary directory goes before the process does. The
// child that is running gets the signal too, and has no handler.
volatile std::sig_atomic_t interrupted = 0;

void note_interrupt(int) {
  interrupted = 1;
}

// A directory that goes with its files, unless the caller named it.
class WorkDirectory {
 public:
  static Result<std::unique_ptr<WorkDirectory>> create(const std::string& named) {
    std::error_code error;
    std::string path = named;
    if (named.empty()) {
      path = (fs::temp_directory_path(error) / "tilewright-demo-XXXXXX").string();
      if (error || mkdtemp(path.data()) == nullptr) {
        return Status{
            StatusCode::io_error,
            fmt::format("{}: no temporary directory could be made; --keep names one", quote(path))};
      }
    } else if (!fs::create_directory(named, error) && error) {
      return Status{StatusCode::invalid_argument,
                    fmt::format("--keep is {}: {}; accepted: a directory, or a new one in a "
                                "directory that is there",
                                quote(named), error.message())};
    }
    return std::unique_ptr<WorkDirectory>(new WorkDirectory(path, named.empty()));
  }
  ~WorkDirectory() {
    std::error_code ignored;
    if (temporary_) fs::remove_all(path_, ignored);
  }
  WorkDirectory(const WorkDirectory&) = delete;
  WorkDirectory& operator=(const WorkDirectory&) = delete;

  std::string file(std::string_view name) const { return fmt::format("{}/{}", path_, name); }

 private:
  WorkDirectory(std::string path, bool temporary) : path_(std::move(path)), temporary_(temporary) {}
  std::string path_;
  bool temporary_;
};

AttentionSpec demo_spec(std::int64_t tokens) {
  AttentionSpec spec;
  spec.q_lengths.max_tokens = tokens;
  spec.kv_lengths.max_tokens = tokens;
  spec.qk_dim = kDemoDim;
  spec.mask.causal = true;
  return spec;
}

class Demo {
 public:
  Demo(const DemoFlags& flags, const WorkDirectory& directory)
      : flags_(flags), directory_(directory), start_(Clock::now()) {}

  Result<DemoReport> run(const std::vector<std::int64_t>& lengths) {
    for (std::int64_t tokens : lengths) {
      const bool last = tokens == lengths.back();
      tokens = within_budget(tokens, last);
      if (tokens == 0) continue;
      Status status = write_inputs(tokens);
      if (status.ok()) status = run_standard(tokens);
      if (status.ok()) status = run_row(tokens, Method::tiled);
      if (!status.ok()) return status;
      if (interrupted != 0) return interrupted_status();
    }
    report_.seconds = elapsed();
    return report_;
  }

 private:
  using Clock = std::chrono::steady_clock;

  double elapsed() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }
  double left() const { return static_cast<double>(flags_.budget_seconds) - elapsed(); }

  // Seconds that a run would take at the rate of the longest one so far; 0 when there is none.
  double predicted(std::int64_t tokens, Method method) const {
    const auto rate = rates_.find(method);
    const Result<AttentionProblem> problem = AttentionProblem::create(demo_spec(tokens));
    return rate == rates_.end() || !problem.ok() ? 0 : problem->flops() / rate->second;
  }

  // The length, or the greatest half of it that tiled attention finishes in time: 0 if that was run
  // already.
  std::int64_t within_budget(std::int64_t tokens, bool last) {
    const double whole = predicted(tokens, Method::tiled);
    // Predictions from shorter runs are pessimistic: starting threads weighs more there.
    if (whole <= 1.2 * left()) return tokens;
    report_.notes.push_back(
        fmt::format("{} tokens would take about {} here, beyond --budget {}; --lengths {} and a "
                    "larger budget run it",
                    grouped(tokens), seconds_text(whole), flags_.budget_seconds, tokens));
    if (!last) return 0;
    const std::int64_t done = report_.rows.empty() ? 0 : report_.rows.back().tokens;
    while (tokens > done && predicted(tokens, Method::tiled) > left()) tokens /= 2;
    return tokens > done ? tokens : 0;
  }

  Status write_inputs(std::int64_t tokens) {
    show(fmt::format("writing q, k and v of {} tokens", grouped(tokens)));
    std::uint64_t seed = static_cast<std::uint64_t>(tokens);
    for (const char* name : {"q.npy", "k.npy", "v.npy"}) {
      if (interrupted != 0) return interrupted_status();
      Status status =
          write_normal_npy(directory_.file(name), DType::f32, {tokens, kDemoDim}, seed++);
      if (!status.ok()) return status;
    }
    return {};
  }

  Status run_standard(std::int64_t tokens) {
    const double score_bytes = standard_score_bytes(tokens);
    std::string why;
    if (score_bytes > kMaxStandardBytes || score_bytes > available_memory_bytes() / 3) {
      why = fmt::format("not run: would need {} for its scores", bytes_text(score_bytes));
    } else if (const double seconds = predicted(tokens, Method::standard); seconds > left() / 2) {
      why = fmt::format("not run: would take about {}", seconds_text(seconds));
    }
    if (why.empty()) return run_row(tokens, Method::standard);
    DemoRow row;
    row.tokens = tokens;
    row.method = Method::standard;
    row.not_run = why;
    report_.rows.push_back(row);
    return {};
  }

  Status run_row(std::int64_t tokens, Method method) {
    if (interrupted != 0) return interrupted_status();
    show(fmt::format("{} tokens, {} attention", grouped(tokens), name(method)));
    std::vector<std::string> words = {"run",      "--json",
                                      "--q",      directory_.file("q.npy"),
                                      "--k",      directory_.file("k.npy"),
                                      "--v",      directory_.file("v.npy"),
                                      "--out",    directory_.file("o.npy"),
                                      "--causal", "bottom-right"};
    if (method == Method::standard) words.insert(words.end(), {"--schedule", "standard"});
    if (flags_.threads > 0)
      words.insert(words.end(), {"--threads", std::to_string(flags_.threads)});
    // Short runs say more about starting threads than about attention: take the median of a few.
    if (tokens <= 4096) words.insert(words.end(), {"--repeat", "5"});
    const Result<ChildResult> child = run_self(words);
    if (!child.ok()) return child.status();
    const json out = json::parse(child->output, nullptr, false);
    if (interrupted != 0) return interrupted_status();
    if (child->exit_code != 0 || out.is_discarded()) {
      return {StatusCode::internal, fmt::format("{} attention of {} tokens ended with exit code {}",
                                                name(method), tokens, child->exit_code)};
    }
    DemoRow row;
    row.tokens = tokens;
    row.method = method;
    row.seconds = out.value("seconds", 0.0);
    row.gflop_per_second = out.value("gflop_per_second", 0.0);
    row.peak_resident_bytes = out.value("peak_resident_bytes", std::int64_t{0});
    row.input_output_bytes =
        out.value("input_bytes", std::int64_t{0}) + out.value("output_bytes", std::int64_t{0});
    row.traffic_bytes = out.value("traffic_bytes", std::int64_t{0});
    row.tile = out.value("tile", "");
    rates_[method] = row.gflop_per_second * 1e9;
    Status status = measure_error(row);
    report_.rows.push_back(row);
    return status;
  }

  // Largest error of O over rows drawn at random, the first and the last among them.
  Status measure_error(DemoRow& row) {
    show(fmt::format("{} tokens, comparing with fp64", grouped(row.tokens)));
    std::vector<files::Array> arrays;
    for (const char* name : {"q.npy", "k.npy", "v.npy", "o.npy"}) {
      Result<files::Array> array = files::read_npy(directory_.file(name));
      if (!array.ok()) return array.status();
      arrays.push_back(std::move(*array));
    }
    const Result<AttentionProblem> problem = AttentionProblem::create(demo_spec(row.tokens));
    if (!problem.ok()) return problem.status();
    AttentionTensors tensors;
    tensors.q = arrays[0].data;
    tensors.k = arrays[1].data;
    tensors.v = arrays[2].data;
    const auto* o = static_cast<const float*>(arrays[3].data);
    const auto rows = reference::sample_rows(*problem, tensors, kDemoErrorRows, 1);
    const auto exact = reference::attention(*problem, tensors, rows);
    row.error_rows = static_cast<std::int64_t>(rows.size());
    for (std::size_t r = 0; r < rows.size(); ++r) {
      for (std::int64_t d = 0; d < kDemoDim; ++d) {
        const double error =
            std::abs(o[rows[r].query * kDemoDim + d] - exact[r].o[static_cast<std::size_t>(d)]);
        // Written so that a NaN is kept.
        if (!(error <= row.max_error)) row.max_error = error;
      }
    }
    return {};
  }

  static Status interrupted_status() { return {StatusCode::internal, "interrupted"}; }

  void show(const std::string& what) const { status_line_.show(what); }

  const DemoFlags& flags_;
  const WorkDirectory& directory_;
  Clock::time_point start_;
  std::map<Method, double> rates_;
  DemoReport report_;
  StatusLine status_line_;
};

// The rows as runs of plans; the one explained comes first: the longest that both schedules ran.
std::vector<TimedRun> timed_runs(const DemoReport& report, const DemoFlags& flags) {
  std::vector<TimedRun> runs;
  std::size_t explained = 0;
  std::int64_t standard_tokens = 0;
  for (const DemoRow& row : report.rows) {
    const auto problem = AttentionProblem::create(demo_spec(row.tokens));
    if (!row.not_run.empty() || !problem.ok()) continue;
    PlanOptions options;
    options.workers = flags.threads;
    if (row.method == Method::standard) options.schedule = Schedule::standard;
    const Result<Plan> plan = tilewright::plan(*problem, this_cpu(), options);
    if (!plan.ok()) continue;
    if (row.method == Method::standard) standard_tokens = row.tokens;
    if (row.method == Method::tiled && row.tokens == standard_tokens) explained = runs.size();
    runs.push_back({*plan, row.seconds, row.peak_resident_bytes});
  }
  if (!runs.empty()) std::swap(runs[0], runs[explained]);
  return runs;
}

Status run_demo(const DemoFlags& flags) {
  std::signal(SIGINT, note_interrupt);
  std::signal(SIGTERM, note_interrupt);
  Result<ReportPage> page = ReportPage::create(*flags.report);
  if (!page.ok()) return page.status();
  const Result<std::unique_ptr<WorkDirectory>> directory = WorkDirectory::create(flags.directory);
  if (!directory.ok()) return directory.status();
  const Result<DemoReport> report =
      Demo(flags, **directory).run(parse_integers(flags.quick ? "256,1024,2048" : flags.lengths));
  if (!report.ok()) return report.status();
  fmt::print("{}\n", *flags.json ? to_json(*report) : to_text(*report));
  const std::vector<TimedRun> runs = timed_runs(*report, flags);
  if (page->wanted() && !runs.empty()) {
    Status status = page->write(this_cpu(), runs);
    if (!status.ok()) return status;
  }
  for (const DemoRow& row : report->rows) {
    if (row.not_run.empty() && !(row.max_error < kDemoMaxError)) {
      return {StatusCode::internal, fmt::format("max error is {} at {} tokens; accepted: below {}",
                                                row.max_error, row.tokens, kDemoMaxError)};
    }
  }
  return {};
}

}  // namespace

Command add_demo(CLI::App& app) {
  CLI::App* demo = app.add_subcommand("demo", "Standard and tiled attention side by side");
  demo->footer(
      R"(Writes q, k and v as .npy files, runs each row in a process of its own, prints one table.

Examples:
  tilewright demo
  tilewright demo --lengths 1024,8192 --keep . --json)");
  auto flags = std::make_shared<DemoFlags>();
  demo->add_option(
          "--keep", flags->directory,
          "Keep the files in this directory, made if it is not there (default: a temporary "
          "one)")
      ->type_name("DIR");
  demo->add_option("--lengths", flags->lengths, "Tokens, growing")
      ->check(growing_integers(1, std::int64_t{1} << 24))
      ->capture_default_str();
  demo->add_flag("--quick", flags->quick, "Short lengths only: 256,1024,2048");
  demo->add_option("--budget", flags->budget_seconds, "Seconds that the whole should take")
      ->check(integer(1, 86400))
      ->capture_default_str();
  demo->add_option("--threads", flags->threads, "CPU threads (default: all this process may use)")
      ->check(integer(1, 4096));
  flags->report = add_report_flag(*demo);
  flags->json = add_json_flag(*demo);
  return {demo, [flags] { return run_demo(*flags); }, flags->json};
}

}  // namespace tilewright::cli
