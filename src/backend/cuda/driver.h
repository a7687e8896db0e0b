// src/backend/cuda/driver.h: opens the CUDA driver at run time and turns its results into Status.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "backend/cuda/driver_api.h"
#include "tilewright/status.h"

namespace tilewright::cuda {

/// The oldest CUDA version a driver may report: the interface's version that driver_api.h declares.
inline constexpr int kInterfaceVersion = 12000;

/// The driver, opened and initialised once a process; or why there is none, naming what was looked
/// for.
const Result<DriverApi>& driver();

/// Opens the first of `library_names` that exists, resolves every entry point and initialises it.
Result<DriverApi> open_driver(const std::vector<std::string>& library_names);

/// Fills the entry points through `resolve`; the message names the first that is missing.
Result<DriverApi> resolve_driver(ResolveSymbol resolve);

/// Initialises `api` and checks its version.
Status initialise_driver(const DriverApi& api);

/// Looks up one further entry point of an open driver by its name; null when it is missing.
void* driver_symbol(const char* name, int version = kInterfaceVersion);

/// ok, or an error that says what was being done, the driver's name of the error and its text.
Status check(const DriverApi& api, DriverResult result, std::string_view doing);

/// "13.0" for 13000.
std::string version_text(int version);

}  // namespace tilewright::cuda
