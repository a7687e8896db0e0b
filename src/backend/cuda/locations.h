// src/backend/cuda/locations.h: where the shipped pack and the user's kernel cache lie.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace tilewright::cuda {

/// The folder of the shared library or program that holds this code; empty when unknown.
std::filesystem::path library_folder();

/// Where a pack named `file_name` may lie: only TILEWRIGHT_KERNEL_PACK when it is set, else beside
/// this library, one folder up (a build tree), and in the share folder of an installation.
std::vector<std::filesystem::path> pack_candidates(const std::string& file_name);

/// The user's cache of compiled kernels: TILEWRIGHT_CACHE ("off" for none), else tilewright under
/// XDG_CACHE_HOME or ~/.cache; empty for none.
std::filesystem::path cache_folder();

}  // namespace tilewright::cuda
