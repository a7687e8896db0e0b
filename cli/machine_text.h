// cli/machine_text.h: a machine's figures for people and as JSON, each with how it is known.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "tilewright/machine.h"

namespace tilewright::cli {

/// {value, grade, source}, or null where the figure is not known.
nlohmann::ordered_json figure_json(const Figure& figure);
nlohmann::ordered_json machine_json(const Machine& machine);

/// Decimal units: "4.8 TB/s" of 4.8e12 and "B/s".
std::string rate_text(double value, std::string_view unit);

/// The value as written; a star marks what is only recalled, a dash what is not known.
std::string marked(const Figure& figure, const std::string& value);

/// Every figure on a line, with grade and source.
void print_machine(const Machine& machine);

}  // namespace tilewright::cli
