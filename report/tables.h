// report/tables.h: the page's figures as text and tables, for readers without scripts and for
// copying.
#pragma once

#include <optional>
#include <string>

#include "report/report.h"
#include "report/walk.h"

namespace tilewright::report {

/// Subject against another schedule at the same length: time, bytes, memory.
std::string comparison_cards(const Contents& contents);

std::string measurements_table(const Contents& contents);
std::string machine_table(const Contents& contents);
std::string walk_table(const std::optional<Walk>& walk);
std::string footprint_table(const Plan& plan);
std::string traffic_table(const Plan& plan);
std::string time_table(const Entry& entry);
std::string sweep_table(const std::vector<SweepPoint>& sweep);

/// The plan's choices as a list of terms.
std::string plan_list(const Plan& plan);

}  // namespace tilewright::report
