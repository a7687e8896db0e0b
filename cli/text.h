// cli/text.h: numbers with units, and aligned tables, for people.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tilewright::cli {

/// In quotes, cut to a length that a line holds, control characters escaped.
std::string quote(std::string_view text);

/// "131,072"
std::string grouped(std::int64_t count);
/// Binary units: "64 GiB", "1.5 MiB", "12 B".
std::string bytes_text(double bytes);
/// "1.23 s", "45.6 ms", "7.8 us"
std::string seconds_text(double seconds);

/// The middle one, or the mean of the middle two; 0 of none.
double median(std::vector<double> values);

/// A table with a header, columns aligned to the right except the first ones.
class Table {
 public:
  explicit Table(std::vector<std::string> header, std::size_t left_columns = 1)
      : left_columns_(left_columns), rows_{std::move(header)} {}
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  std::string text() const;

 private:
  std::size_t left_columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace tilewright::cli
