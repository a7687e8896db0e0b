// report/data.h: the page's figures as one JSON blob, which its scripts draw.
#pragma once

#include <optional>
#include <string>

#include "report/report.h"
#include "report/walk.h"

namespace tilewright::report {

/// Bytes that operands and workspace take off chip, at the problem's bounds.
double planned_memory_bytes(const Plan& plan);
/// Traffic in all, to and from fast memory and off chip; nothing where the planner has no model.
std::optional<double> traffic_bytes(const Plan& plan);
std::optional<double> off_chip_bytes(const Plan& plan);
/// Modelled seconds; nothing where the planner has no model.
std::optional<double> modelled_seconds(const Plan& plan);
/// The peak rate for the plan's operands.
const Figure& peak_flops(const Machine& machine, const Plan& plan);

/// JSON that is safe inside a script element: no "<" in it.
std::string page_data(const Contents& contents, const std::optional<Walk>& walk);

}  // namespace tilewright::report
