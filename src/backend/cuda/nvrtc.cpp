// src/backend/cuda/nvrtc.cpp: finds and opens the CUDA run-time compiler, the newest of those
// installed.
#include "backend/cuda/nvrtc.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <sstream>
#include <type_traits>

#include "backend/cuda/locations.h"

namespace tilewright::cuda {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLibraryNames[] = {"libnvrtc.so.13", "libnvrtc.so.12"};
constexpr const char* kPipFolders[] = {"nvidia/cu13/lib", "nvidia/cuda_nvrtc/lib"};

void append_pip_packages(const fs::path& site_packages, std::vector<std::string>& candidates) {
  for (const char* folder : kPipFolders) {
    for (std::string& file : nvrtc_files_in(site_packages / folder))
      candidates.push_back(std::move(file));
  }
}

void append_virtual_environment(const fs::path& root, std::vector<std::string>& candidates) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(root / "lib", error)) {
    if (entry.path().filename().string().starts_with("python")) {
      append_pip_packages(entry.path() / "site-packages", candidates);
    }
  }
}

Result<Nvrtc> open_nvrtc(const std::string& path) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* reason = dlerror();
    return Status(StatusCode::unavailable, reason ? reason : path);
  }
  Nvrtc opened;
  opened.path = path;
  std::string missing;
  const auto bind = [&](const char* symbol, auto& slot) {
    void* address = dlsym(library, symbol);
    if (address == nullptr && missing.empty()) missing = symbol;
    slot = reinterpret_cast<std::remove_reference_t<decltype(slot)>>(address);
  };
  bind("nvrtcGetErrorString", opened.api.get_error_string);
  bind("nvrtcVersion", opened.api.version);
  bind("nvrtcCreateProgram", opened.api.create_program);
  bind("nvrtcDestroyProgram", opened.api.destroy_program);
  bind("nvrtcCompileProgram", opened.api.compile_program);
  bind("nvrtcGetProgramLogSize", opened.api.get_log_size);
  bind("nvrtcGetProgramLog", opened.api.get_log);
  bind("nvrtcGetCUBINSize", opened.api.get_cubin_size);
  bind("nvrtcGetCUBIN", opened.api.get_cubin);
  std::string problem;
  if (!missing.empty()) {
    problem = path + " lacks " + missing;
  } else if (opened.api.version(&opened.version.major, &opened.version.minor) !=
             NvrtcResult::success) {
    problem = path + " does not tell its version";
  } else if (opened.version < kOldestNvrtc) {
    problem = path + " is version " + opened.version.text() + ", older than " + kOldestNvrtc.text();
  }
  if (!problem.empty()) {
    dlclose(library);
    return Status(StatusCode::unavailable, problem);
  }
  return opened;
}

}  // namespace

std::string NvrtcVersion::text() const {
  return fmt::format("{}.{}", major, minor);
}

std::vector<std::string> nvrtc_files_in(const fs::path& folder) {
  std::vector<std::string> files;
  std::error_code error;
  for (const char* name : kLibraryNames) {
    const fs::path file = folder / name;
    if (fs::exists(file, error)) files.push_back(file.string());
  }
  return files;
}

std::vector<std::string> nvrtc_candidates() {
  std::vector<std::string> candidates;
  if (const char* chosen = std::getenv("TILEWRIGHT_NVRTC"); chosen && *chosen) {
    std::error_code error;
    if (!fs::is_directory(chosen, error)) return {chosen};
    candidates = nvrtc_files_in(chosen);
    if (candidates.empty()) candidates.push_back((fs::path(chosen) / kLibraryNames[0]).string());
    return candidates;
  }
  if (const fs::path folder = library_folder(); !folder.empty()) {
    append_pip_packages(folder.parent_path(), candidates);  // <site-packages>/tilewright/
  }
  if (const char* root = std::getenv("VIRTUAL_ENV"); root && *root)
    append_virtual_environment(root, candidates);
  if (const char* list = std::getenv("PYTHONPATH")) {
    std::stringstream folders(list);
    for (std::string folder; std::getline(folders, folder, ':');) {
      if (!folder.empty()) append_pip_packages(folder, candidates);
    }
  }
  for (const char* name : {"CUDA_HOME", "CUDA_PATH"}) {
    if (const char* root = std::getenv(name); root && *root) {
      for (std::string& file : nvrtc_files_in(fs::path(root) / "lib64"))
        candidates.push_back(std::move(file));
    }
  }
  for (const char* name : kLibraryNames) candidates.emplace_back(name);
  return candidates;
}

Result<Nvrtc> open_newest_nvrtc(const std::vector<std::string>& candidates) {
  std::optional<Nvrtc> newest;
  std::string tried;
  for (const std::string& candidate : candidates) {
    Result<Nvrtc> opened = open_nvrtc(candidate);
    if (!opened) {
      tried += (tried.empty() ? "" : "; ") + opened.status().message();
      continue;
    }
    if (!newest || opened->version > newest->version) newest = std::move(opened).value();
    if (newest->trusted()) break;
  }
  if (newest) return *std::move(newest);
  return Status(
      StatusCode::unavailable,
      "no CUDA run-time compiler (NVRTC " + kOldestNvrtc.text() + " or newer): " + tried +
          "; install the Python package nvidia-cuda-nvrtc, or set TILEWRIGHT_NVRTC to the library");
}

const Result<Nvrtc>& nvrtc() {
  static const Result<Nvrtc> opened = open_newest_nvrtc(nvrtc_candidates());
  return opened;
}

}  // namespace tilewright::cuda
