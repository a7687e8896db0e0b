// cli/report_page.h: --report FILE: what was run, told as an HTML page.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "files/output_file.h"
#include "report/report.h"
#include "tilewright/attention.h"
#include "tilewright/machine.h"
#include "tilewright/plan.h"
#include "tilewright/run.h"
#include "tilewright/status.h"

namespace CLI {
class App;
}

namespace tilewright::cli {

/// One plan, and what was measured of it here.
struct TimedRun {
  Plan plan;
  std::optional<double> seconds;                  ///< median; unset: not run
  std::optional<std::int64_t> peak_memory_bytes;  ///< of a process that did nothing else
};

using ScoreOf = std::function<double(std::int64_t query, std::int64_t key)>;

std::shared_ptr<std::string> add_report_flag(CLI::App& app);

/// Opens its file before the work, writes it after; does nothing when no path was given.
class ReportPage {
 public:
  static Result<ReportPage> create(const std::string& path);
  bool wanted() const noexcept { return file_.has_value(); }
  /// The first run is the one explained; others are for comparison. Lengths and schedules around it
  /// that were not run are planned.
  Status write(const Machine& machine, const std::vector<TimedRun>& runs, ScoreOf score = {},
               std::vector<report::SweepPoint> sweep = {});

 private:
  std::optional<files::OutputFile> file_;
};

/// The same problem at shorter lengths, for the page's charts.
std::vector<AttentionSpec> shorter_specs(const AttentionSpec& spec);

/// The scores of the first head, for the page's walk; nothing where lengths vary.
ScoreOf first_head_scores(const AttentionProblem& problem, const AttentionTensors& tensors);

}  // namespace tilewright::cli
