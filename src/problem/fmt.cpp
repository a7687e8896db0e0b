// src/problem/fmt.cpp: the one place that compiles fmt's implementation, in place of seconds in every file.
//
// Everything else includes fmt's headers as declarations. Header-only mode here makes the functions that
// they call; naming each one keeps it in the object file.
#define FMT_HEADER_ONLY 1
#include <fmt/format.h>

#include <cstdio>

namespace {

[[gnu::used]] constexpr auto kFormat =
    static_cast<std::string (*)(fmt::string_view, fmt::format_args)>(&fmt::vformat);
[[gnu::used]] constexpr auto kPrint =
    static_cast<void (*)(std::FILE*, fmt::string_view, fmt::format_args)>(&fmt::vprint);

}  // namespace
