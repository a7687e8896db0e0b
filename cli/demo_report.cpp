// cli/demo_report.cpp: what the demo found, as a table for people and as JSON.
#include "demo_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "text.h"

namespace tilewright::cli {
namespace {

std::int64_t all_else(const DemoRow& row) {
  return std::max<std::int64_t>(0, row.peak_resident_bytes - row.input_output_bytes);
}

std::string bytes_or_unknown(std::int64_t bytes) {
  return bytes > 0 ? bytes_text(static_cast<double>(bytes)) : "not known";
}

}  // namespace

std::string_view name(Method method) {
  return method == Method::standard ? "standard" : "tiled";
}

double standard_score_bytes(std::int64_t tokens) {
  return static_cast<double>(tokens) * static_cast<double>(tokens) * sizeof(float);
}

double available_memory_bytes() {
  std::ifstream file("/proc/meminfo");
  for (std::string key; file >> key;) {
    double kibibytes = 0;
    if (key == "MemAvailable:" && file >> kibibytes) return kibibytes * 1024;
    file.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return 0;
}

std::string to_text(const DemoReport& report) {
  Table table({"tokens", "attention", "tile", "time", "GFLOP/s", "peak memory", "beyond in+out",
               "bytes moved", "max error"},
              3);
  for (const DemoRow& row : report.rows) {
    if (!row.not_run.empty()) {
      table.add({grouped(row.tokens), std::string(name(row.method)), row.not_run});
      continue;
    }
    table.add({grouped(row.tokens), std::string(name(row.method)), row.tile,
               seconds_text(row.seconds), fmt::format("{:.1f}", row.gflop_per_second),
               bytes_or_unknown(row.peak_resident_bytes),
               bytes_text(static_cast<double>(all_else(row))), bytes_or_unknown(row.traffic_bytes),
               fmt::format("{:.1e}", row.max_error)});
  }
  std::string text =
      fmt::format("Exact causal attention, f32, one head of dim {}, on this machine's CPU\n\n{}\n",
                  kDemoDim, table.text());
  text += fmt::format(
      "peak memory    of the whole process, its inputs and outputs among it; beyond in+out: "
      "without "
      "them\n"
      "bytes moved    planned, between a core's own cache and the memory behind it. Tiling makes "
      "the\n"
      "               memory needed grow linearly; the bytes moved still grow quadratically, only "
      "fewer\n"
      "max error      of O against fp64, over up to {} rows of each run\n",
      kDemoErrorRows);
  const auto longest = std::max_element(
      report.rows.begin(), report.rows.end(), [](const DemoRow& a, const DemoRow& b) {
        return (a.not_run.empty() ? a.tokens : 0) < (b.not_run.empty() ? b.tokens : 0);
      });
  if (longest != report.rows.end() && longest->method == Method::tiled) {
    text += fmt::format(
        "\nAt {} tokens standard attention would need {} for the scores of this one head; tiled\n"
        "attention took {} beyond its inputs and outputs.\n",
        grouped(longest->tokens), bytes_text(standard_score_bytes(longest->tokens)),
        bytes_text(static_cast<double>(all_else(*longest))));
  }
  for (const std::string& note : report.notes) text += fmt::format("note: {}\n", note);
  return text + fmt::format("\nThe whole took {}.", seconds_text(report.seconds));
}

std::string to_json(const DemoReport& report) {
  using json = nlohmann::ordered_json;
  json rows = json::array();
  for (const DemoRow& row : report.rows) {
    json out = {{"tokens", row.tokens},
                {"attention", name(row.method)},
                {"score_matrix_bytes", standard_score_bytes(row.tokens)}};
    if (!row.not_run.empty()) {
      out["not_run"] = row.not_run;
    } else {
      out["tile"] = row.tile;
      out["seconds"] = row.seconds;
      out["gflop_per_second"] = row.gflop_per_second;
      out["peak_resident_bytes"] = row.peak_resident_bytes;
      out["input_and_output_bytes"] = row.input_output_bytes;
      out["planned_traffic_bytes"] = row.traffic_bytes;
      out["max_error"] = row.max_error;
      out["max_error_rows"] = row.error_rows;
    }
    rows.push_back(std::move(out));
  }
  return json{{"dim", kDemoDim},
              {"heads", 1},
              {"dtype", "f32"},
              {"causal", "bottom-right"},
              {"rows", rows},
              {"notes", report.notes},
              {"total_seconds", report.seconds}}
      .dump(2);
}

}  // namespace tilewright::cli
