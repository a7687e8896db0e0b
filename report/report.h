// report/report.h: one self-contained HTML page about one run: machine, schedule, plan,
// measurements.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tilewright/machine.h"
#include "tilewright/plan.h"

namespace tilewright::report {

/// One schedule at one length. Tokens, FLOPs, bytes, footprint and modelled time are the plan's.
struct Entry {
  std::string series;  ///< "standard", "tiled": entries of one name make one line in each chart
  Plan plan;
  std::optional<double> measured_seconds;  ///< the median of this run
  /// Resident at the peak of this run, operands and program included.
  std::optional<std::int64_t> measured_memory_bytes;
};

/// One tile of a sweep. A tile that does not fit has neither bytes nor time.
struct SweepPoint {
  std::string varied;     ///< "query rows", "keys": points of one name make one pair of charts
  std::int64_t side = 0;  ///< the varied side of the tile
  Tile tile;
  bool fits = true;
  std::string fullest_store;  ///< the one that the tile fills most
  std::int64_t fullest_bytes = 0;
  std::optional<double> modelled_seconds;
  std::optional<double> measured_seconds;
  std::optional<std::int64_t> traffic_bytes;
};

/// What the page tells. Figures that are absent here are shown as not measured or not modelled.
struct Contents {
  std::string heading;  ///< what was run
  std::string command;  ///< the command line that made the page; may be empty
  Machine machine;
  std::vector<Entry> entries;
  std::size_t subject = 0;  ///< the entry whose plan and walk are explained
  /// The score of a query and a key that it sees, in the run's first head; empty: the walk shows
  /// example scores and says so.
  std::function<double(std::int64_t query, std::int64_t key)> score;
  std::vector<SweepPoint> sweep;  ///< by growing side; empty: none was made
};

/// The page. It needs no network, and shows every figure as a table where scripts are off.
std::string page(const Contents& contents);

}  // namespace tilewright::report
