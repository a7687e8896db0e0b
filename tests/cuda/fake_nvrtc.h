// tests/cuda/fake_nvrtc.h: a compiler whose machine code is a copy of a real, tiny one; counts its
// compilations.
#pragma once

#include <atomic>

#include "backend/cuda/nvrtc.h"

namespace tilewright::cuda {

struct FakeNvrtc {
  std::atomic<int> compilations{0};
  NvrtcResult compile_result = NvrtcResult::success;
  std::string log;
  std::string cubin;  ///< what every compilation gives
  std::string main_text;
  std::vector<std::string> options;

  void reset();
};

FakeNvrtc& fake_nvrtc();

/// An open compiler of the given version.
Nvrtc open_fake_nvrtc(NvrtcVersion version = {13, 5});

/// A minimal ELF image with one kernel: what read_cubin needs and no more.
std::string fake_cubin(const std::string& entry, unsigned registers, unsigned stack_bytes,
                       unsigned shared_bytes);

}  // namespace tilewright::cuda
