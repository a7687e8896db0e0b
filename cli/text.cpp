// cli/text.cpp: numbers with units, and aligned tables.
#include "text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "files/error_text.h"

namespace tilewright::cli {

std::string quote(std::string_view text) {
  return files::quote(text);
}

std::string grouped(std::int64_t count) {
  const std::string digits = fmt::format("{}", count);
  std::string out;
  for (std::size_t at = 0; at < digits.size(); ++at) {
    const std::size_t left = digits.size() - at;
    if (at > 0 && left % 3 == 0 && digits[at - 1] != '-') out += ',';
    out += digits[at];
  }
  return out;
}

std::string bytes_text(double bytes) {
  constexpr std::array kUnits = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  std::size_t unit = 0;
  while (std::abs(bytes) >= 1024 && unit + 1 < kUnits.size()) {
    bytes /= 1024;
    ++unit;
  }
  const bool whole = bytes == std::floor(bytes) || std::abs(bytes) >= 100;
  return whole ? fmt::format("{:.0f} {}", bytes, kUnits[unit])
               : fmt::format("{:.1f} {}", bytes, kUnits[unit]);
}

std::string seconds_text(double seconds) {
  if (seconds >= 1) return fmt::format("{:.2f} s", seconds);
  if (seconds >= 1e-3) return fmt::format("{:.1f} ms", seconds * 1e3);
  return fmt::format("{:.1f} us", seconds * 1e6);
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

std::string Table::text() const {
  std::vector<std::size_t> widths;
  for (const auto& row : rows_) {
    widths.resize(std::max(widths.size(), row.size()));
    // The last cell of a short row may run on over the columns that it lacks.
    const std::size_t cells = row.size() < rows_.front().size() ? row.size() - 1 : row.size();
    for (std::size_t c = 0; c < cells; ++c) widths[c] = std::max(widths[c], row[c].size());
  }
  std::string out;
  const auto add_line = [&](const std::vector<std::string>& row) {
    std::string line;
    for (std::size_t c = 0; c < row.size(); ++c) {
      if (c > 0) line += "  ";
      line += c < left_columns_ ? fmt::format("{:<{}}", row[c], widths[c])
                                : fmt::format("{:>{}}", row[c], widths[c]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  };
  add_line(rows_.front());
  std::vector<std::string> rule;
  for (const std::size_t width : widths) rule.emplace_back(width, '-');
  add_line(rule);
  for (std::size_t r = 1; r < rows_.size(); ++r) add_line(rows_[r]);
  return out;
}

}  // namespace tilewright::cli
