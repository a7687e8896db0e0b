// cli/check.cpp: checks of flag values.
#include "check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

#include "text.h"

namespace tilewright::cli {
namespace {

template <typename Number>
std::optional<Number> parse_whole(std::string_view text) {
  Number value{};
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || stop != end || text.empty()) return std::nullopt;
  return value;
}

std::optional<std::pair<std::int64_t, std::int64_t>> parse_pair(std::string_view text, char between,
                                                                std::int64_t low) {
  const std::size_t at = text.find(between);
  if (at == std::string_view::npos) return std::nullopt;
  const auto first = parse_integer(text.substr(0, at));
  const auto second = parse_integer(text.substr(at + 1));
  if (!first || !second || *first < low || *second < low) return std::nullopt;
  return std::pair{*first, *second};
}

// A check whose refusal CLI11 prints after the flag's name.
template <typename Accepts>
CLI::Validator check(std::string type, std::string accepted, Accepts accepts) {
  return CLI::Validator(
      [accepted = std::move(accepted), accepts = std::move(accepts)](std::string& text) {
        if (accepts(text)) return std::string{};
        return fmt::format("value is {}; accepted: {}", quote(text), accepted);
      },
      std::move(type));
}

}  // namespace

std::optional<std::int64_t> parse_integer(std::string_view text) {
  return parse_whole<std::int64_t>(text);
}

std::optional<double> parse_number(std::string_view text) {
  return parse_whole<double>(text);
}

CLI::Validator integer(std::int64_t low, std::int64_t high) {
  return check("INTEGER", fmt::format("an integer from {} to {}", low, high),
               [low, high](const std::string& text) {
                 const auto value = parse_integer(text);
                 return value && *value >= low && *value <= high;
               });
}

CLI::Validator finite_number() {
  return check("NUMBER", "a finite number", [](const std::string& text) {
    const auto value = parse_number(text);
    return value && std::isfinite(*value);
  });
}

CLI::Validator one_of(std::vector<std::string> words) {
  std::string accepted = fmt::format("{}", fmt::join(words, ", "));
  std::string type = fmt::format("{}", fmt::join(words, "|"));
  return check(std::move(type), std::move(accepted),
               [words = std::move(words)](const std::string& text) {
                 return std::find(words.begin(), words.end(), text) != words.end();
               });
}

CLI::Validator tile_text() {
  return check("MxN", "query rows x key rows, such as 64x128",
               [](const std::string& text) { return parse_pair(text, 'x', 1).has_value(); });
}

CLI::Validator window_text() {
  return check("L,R", "keys to the left, keys to the right, -1 unbounded, such as 255,0",
               [](const std::string& text) { return parse_pair(text, ',', -1).has_value(); });
}

CLI::Validator growing_integers(std::int64_t low, std::int64_t high) {
  return check("N,...", fmt::format("growing integers from {} to {}, such as 1024,4096", low, high),
               [low, high](const std::string& text) {
                 const std::vector<std::int64_t> values = parse_integers(text);
                 std::int64_t least = low;
                 for (const std::int64_t value : values) {
                   if (value < least || value > high) return false;
                   least = value + 1;
                 }
                 return !values.empty();
               });
}

std::vector<std::int64_t> parse_integers(std::string_view text) {
  std::vector<std::int64_t> values;
  for (;;) {
    const std::size_t comma = text.find(',');
    const auto value = parse_integer(text.substr(0, comma));
    if (!value) return {};
    values.push_back(*value);
    if (comma == std::string_view::npos) return values;
    text.remove_prefix(comma + 1);
  }
}

Tile parse_tile(const std::string& text) {
  const auto pair = parse_pair(text, 'x', 1).value_or(std::pair<std::int64_t, std::int64_t>{});
  return {pair.first, pair.second};
}

void parse_window(const std::string& text, Mask& mask) {
  const auto pair = parse_pair(text, ',', -1).value_or(std::pair<std::int64_t, std::int64_t>{});
  mask.window_left = pair.first;
  mask.window_right = pair.second;
}

std::vector<std::string> dtype_words() {
  return {"f32", "bf16", "f16"};
}

DType parse_dtype(const std::string& word) {
  for (const DType dtype : {DType::bf16, DType::f16}) {
    if (word == name(dtype)) return dtype;
  }
  return DType::f32;
}

std::vector<std::string> schedule_words() {
  return {"q_outer", "kv_outer", "standard"};
}

Schedule parse_schedule(const std::string& word) {
  for (const Schedule schedule : {Schedule::kv_outer, Schedule::standard}) {
    if (word == name(schedule)) return schedule;
  }
  return Schedule::q_outer;
}

void parse_causal(const std::string& word, Mask& mask) {
  mask.causal = true;
  mask.diagonal = word == "top-left" ? Diagonal::top_left : Diagonal::bottom_right;
}

}  // namespace tilewright::cli
