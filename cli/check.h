// cli/check.h: checks of flag values, so that every refusal names flag, value and what is accepted.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tilewright/attention.h"
#include "tilewright/plan.h"
#include "tilewright/status.h"

namespace tilewright::cli {

/// The whole of text as a number; nothing when it is not one or does not fit the type.
std::optional<std::int64_t> parse_integer(std::string_view text);
std::optional<double> parse_number(std::string_view text);

/// A decimal integer from low to high.
CLI::Validator integer(std::int64_t low, std::int64_t high);
/// Any finite number.
CLI::Validator finite_number();
/// One of the words.
CLI::Validator one_of(std::vector<std::string> words);
/// MxN: query rows by key rows.
CLI::Validator tile_text();
/// L,R: keys to the left and to the right, -1 unbounded.
CLI::Validator window_text();

/// Integers from low to high, each more than the one before it, with commas between.
CLI::Validator growing_integers(std::int64_t low, std::int64_t high);

/// For text that passed growing_integers().
std::vector<std::int64_t> parse_integers(std::string_view text);
/// For text that passed tile_text() or window_text().
Tile parse_tile(const std::string& text);
void parse_window(const std::string& text, Mask& mask);

/// Words for the enumerations that flags take.
std::vector<std::string> dtype_words();
DType parse_dtype(const std::string& word);
std::vector<std::string> schedule_words();
Schedule parse_schedule(const std::string& word);
void parse_causal(const std::string& word, Mask& mask);

}  // namespace tilewright::cli
