// src/machine/clock.h: the clock that a core of this machine runs at now.
#pragma once

#include <optional>

namespace tilewright::machine {

/// Additions that wait for each other, one clock each, counted against the time they take: under a
/// millisecond of work, the best of several tries, as another process can only make one slower.
/// Nothing on a processor that there is no such chain for.
std::optional<double> measure_clock_hz();

}  // namespace tilewright::machine
