// report/html.cpp: escaping, numbers with units, tables.
#include "report/html.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

namespace tilewright::report {
namespace {

template <std::size_t kCount>
std::string scaled(double value, double step, const std::array<const char*, kCount>& units) {
  std::size_t unit = 0;
  while (std::abs(value) >= step && unit + 1 < kCount) {
    value /= step;
    ++unit;
  }
  const bool whole = value == std::floor(value) || std::abs(value) >= 100;
  return fmt::format("{:.{}f} {}", value, whole ? 0 : 1, units[unit]);
}

}  // namespace

std::string escape(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string bytes_text(double bytes) {
  return scaled(bytes, 1024, std::array{"B", "KiB", "MiB", "GiB", "TiB", "PiB"});
}

std::string rate_text(double per_second) {
  return scaled(per_second, 1000, std::array{"B/s", "kB/s", "MB/s", "GB/s", "TB/s", "PB/s"});
}

std::string flops_text(double per_second) {
  return scaled(per_second, 1000,
                std::array{"FLOP/s", "kFLOP/s", "MFLOP/s", "GFLOP/s", "TFLOP/s", "PFLOP/s"});
}

std::string seconds_text(double seconds) {
  if (seconds >= 1) return fmt::format("{:.2f} s", seconds);
  if (seconds >= 1e-3) return fmt::format("{:.{}f} ms", seconds * 1e3, seconds >= 0.1 ? 0 : 1);
  return fmt::format("{:.1f} µs", seconds * 1e6);
}

std::string count_text(std::int64_t count) {
  const std::string digits = fmt::format("{}", count);
  std::string out;
  for (std::size_t at = 0; at < digits.size(); ++at) {
    if (at > 0 && (digits.size() - at) % 3 == 0 && digits[at - 1] != '-') out += ',';
    out += digits[at];
  }
  return out;
}

std::string dagger(const Figure& figure) {
  return figure.grade == Grade::recalled ? "†" : "";
}

std::string Table::html() const {
  if (rows_.empty()) return "";
  std::string out = fmt::format("<table><caption>{}</caption><thead><tr>", escape(caption_));
  for (const std::string& cell : header_) {
    out += fmt::format("<th scope=\"col\">{}</th>", escape(cell));
  }
  out += "</tr></thead><tbody>\n";
  for (const auto& row : rows_) {
    out += fmt::format("<tr><th scope=\"row\">{}</th>", escape(row.front()));
    for (std::size_t c = 1; c < row.size(); ++c) out += fmt::format("<td>{}</td>", escape(row[c]));
    out += "</tr>\n";
  }
  return out + "</tbody></table>\n";
}

}  // namespace tilewright::report
