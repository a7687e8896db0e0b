// report/html.h: text for a page: escaping, numbers with units, tables.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tilewright/machine.h"

namespace tilewright::report {

/// Text that is safe between tags and inside quoted attributes.
std::string escape(std::string_view text);

std::string bytes_text(double bytes);        ///< "1.5 MiB"
std::string rate_text(double per_second);    ///< "1.5 TB/s": decimal, as data sheets have it
std::string flops_text(double per_second);   ///< "1.5 TFLOP/s"
std::string seconds_text(double seconds);    ///< "1.5 ms"
std::string count_text(std::int64_t count);  ///< "131,072"

/// A recalled figure gets a dagger: it was not read anew.
std::string dagger(const Figure& figure);

/// An HTML table with a caption; cells are escaped, the first column is a row's heading.
class Table {
 public:
  Table(std::string caption, std::vector<std::string> header)
      : caption_(std::move(caption)), header_(std::move(header)) {}
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  /// Empty when no row was added.
  std::string html() const;

 private:
  std::string caption_;
  std::vector<std::string> header_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace tilewright::report
