// src/backend/cuda/nvrtc.h: finds and opens the CUDA run-time compiler, the newest of those
// installed.
#pragma once

#include <compare>
#include <filesystem>
#include <string>
#include <vector>

#include "backend/cuda/nvrtc_api.h"
#include "tilewright/status.h"

namespace tilewright::cuda {

struct NvrtcVersion {
  int major = 0;
  int minor = 0;
  // NOLINTNEXTLINE(modernize-use-nullptr): taken for a comparison with 0
  auto operator<=>(const NvrtcVersion&) const = default;
  std::string text() const;  ///< "13.5"
};

/// The oldest compiler that knows Hopper's own instructions and C++20.
inline constexpr NvrtcVersion kOldestNvrtc{12, 0};

/// Before this version the assembler may overwrite the registers of an asynchronous matrix operand
/// while it is still being read. The kernels give it no occasion (they write such registers only
/// once nothing is in flight), but the shipped pack is compiled with nothing older.
inline constexpr NvrtcVersion kTrustedNvrtc{13, 3};

/// From this version on NVRTC keeps what it compiled in the driver's cache on disk.
inline constexpr NvrtcVersion kCachingNvrtc{12, 9};

/// An open compiler.
struct Nvrtc {
  NvrtcApi api{};
  NvrtcVersion version;
  std::string path;  ///< Where it was found.

  bool trusted() const { return version >= kTrustedNvrtc; }
};

/// The newest compiler found, opened once a process; or why there is none, naming what was looked
/// for.
const Result<Nvrtc>& nvrtc();

/// Where to look, in order: only TILEWRIGHT_NVRTC (a file or a folder) when it is set; else pip's
/// packages near this library, in the active virtual environment and on PYTHONPATH, CUDA_HOME, and
/// the system's search path.
std::vector<std::string> nvrtc_candidates();

/// Files named libnvrtc.so.N in `folder`, newest major first.
std::vector<std::string> nvrtc_files_in(const std::filesystem::path& folder);

/// Opens the candidates and returns the first that is trusted, else the newest one that is new
/// enough.
Result<Nvrtc> open_newest_nvrtc(const std::vector<std::string>& candidates);

}  // namespace tilewright::cuda
