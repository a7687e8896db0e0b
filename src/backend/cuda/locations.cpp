// src/backend/cuda/locations.cpp: where the shipped pack and the user's kernel cache lie.
#include "backend/cuda/locations.h"

#include <dlfcn.h>

#include <cstdlib>
#include <string_view>

namespace tilewright::cuda {
namespace {

namespace fs = std::filesystem;

const char* environment(const char* name) {
  const char* value = std::getenv(name);
  return value && *value ? value : nullptr;
}

}  // namespace

fs::path library_folder() {
  static const fs::path folder = [] {
    std::error_code error;
    Dl_info info{};
    if (dladdr(reinterpret_cast<const void*>(&library_folder), &info) == 0 || !info.dli_fname)
      return fs::path();
    // A program is reported by the name it was started with, which the search path may have
    // resolved.
    const bool has_folder = std::string_view(info.dli_fname).find('/') != std::string_view::npos;
    const fs::path file = fs::canonical(has_folder ? info.dli_fname : "/proc/self/exe", error);
    return error ? fs::path() : file.parent_path();
  }();
  return folder;
}

std::vector<fs::path> pack_candidates(const std::string& file_name) {
  if (const char* chosen = environment("TILEWRIGHT_KERNEL_PACK")) return {chosen};
  const fs::path folder = library_folder();
  if (folder.empty()) return {};
  return {folder / file_name, folder.parent_path() / file_name,
          folder.parent_path() / "share" / "tilewright" / file_name,
          folder.parent_path().parent_path() / "share" / "tilewright" / file_name};
}

fs::path cache_folder() {
  if (const char* chosen = environment("TILEWRIGHT_CACHE")) {
    return std::string(chosen) == "off" ? fs::path() : fs::path(chosen);
  }
  if (const char* caches = environment("XDG_CACHE_HOME")) return fs::path(caches) / "tilewright";
  if (const char* home = environment("HOME")) return fs::path(home) / ".cache" / "tilewright";
  return {};
}

}  // namespace tilewright::cuda
