// src/problem/fmt.cpp: the one place that compiles fmt's implementation, sparing seconds in every
// file.
//
// Everything else includes fmt's headers as declarations. Header-only mode makes the functions
// here, and this file is compiled without inlining, so that each one that is used below is one to
// link with.
#define FMT_HEADER_ONLY 1
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>
#include <string>
#include <vector>

namespace tilewright {

// Never called: uses what our files use.
[[gnu::used]] static std::string fmt_implementation(std::FILE* file, fmt::string_view text,
                                                    fmt::format_args arguments) {
  fmt::vprint(text, arguments);
  fmt::vprint(file, text, arguments);
  const std::vector<std::string> words = {"a", "b"};
  return fmt::vformat(text, arguments) +
         fmt::format("{:L} {:L} {} {}", 1, 1.5, words, fmt::join(words, ", "));
}

}  // namespace tilewright
