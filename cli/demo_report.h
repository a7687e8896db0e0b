// cli/demo_report.h: what the demo found, as a table for people and as JSON.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tilewright::cli {

constexpr std::int64_t kDemoDim = 64;
constexpr std::int64_t kDemoErrorRows = 256;
/// A wrong result is off by about 1 in this data; rounding by about 1e-6.
constexpr double kDemoMaxError = 1e-4;
/// Standard attention is not run where its scores alone need more.
constexpr double kMaxStandardBytes = 2.0 * 1024 * 1024 * 1024;

enum class Method : std::uint8_t { standard, tiled };

std::string_view name(Method method);

struct DemoRow {
  std::int64_t tokens = 0;
  Method method = Method::tiled;
  std::string not_run;  ///< why not; empty: it ran
  std::string tile;
  double seconds = 0;
  double gflop_per_second = 0;
  std::int64_t peak_resident_bytes = 0;  ///< of the whole process
  std::int64_t input_output_bytes = 0;
  std::int64_t traffic_bytes = 0;  ///< planned; 0: not known
  double max_error = 0;
  std::int64_t error_rows = 0;
};

struct DemoReport {
  std::vector<DemoRow> rows;
  std::vector<std::string> notes;
  double seconds = 0;
};

/// Bytes of the f32 score matrix of one head.
double standard_score_bytes(std::int64_t tokens);
/// Physical memory that is free or can be freed; 0 where the system does not tell.
double available_memory_bytes();

std::string to_text(const DemoReport& report);
std::string to_json(const DemoReport& report);

}  // namespace tilewright::cli
