// tools/pack_kernels.cpp: compiles the pack of kernels that is shipped: pack_kernels FILE [JOBS]
// [every-feature].
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string_view>
#include <thread>

#include "backend/cuda/pack_builder.h"
#include "backend/cuda/packed_kernels.h"

int main(int argc, char** argv) {
  using namespace tilewright;
  const bool every_feature = argc == 4 && std::string_view(argv[3]) == "every-feature";
  if (argc < 2 || argc > 4 || (argc == 4 && !every_feature)) {
    std::fprintf(stderr, "usage: %s FILE [JOBS] [every-feature]\n", argv[0]);
    return 2;
  }
  const int jobs =
      argc >= 3 ? std::atoi(argv[2]) : static_cast<int>(std::thread::hardware_concurrency());
  const Result<cuda::Nvrtc>& nvrtc = cuda::nvrtc();
  if (!nvrtc.ok()) {
    std::fprintf(stderr, "pack_kernels: %s\n", nvrtc.status().message().c_str());
    return 1;
  }
  if (!nvrtc->trusted()) {
    std::fprintf(stderr, "pack_kernels: NVRTC at %s is version %s; accepted: %s or newer\n",
                 nvrtc->path.c_str(), nvrtc->version.text().c_str(),
                 cuda::kTrustedNvrtc.text().c_str());
    return 1;
  }
  const Result<cuda::PackReport> report =
      cuda::build_pack(argv[1], *nvrtc,
                       cuda::packed_kernels(every_feature ? cuda::PackScope::every_feature
                                                          : cuda::PackScope::shipped),
                       jobs > 0 ? jobs : 1);
  if (!report.ok()) {
    std::fprintf(stderr, "pack_kernels: %s\n", report.status().message().c_str());
    return 1;
  }
  const double megabytes = static_cast<double>(report->file_bytes) / 1e6;
  if (report->seconds == 0) {
    std::printf("kernel pack: %d kernels, %.1f MB, already there\n", report->kernels, megabytes);
  } else {
    // Processor time tells more than the clock on a machine that others use.
    const double processor_seconds = static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
    std::printf("kernel pack: %d kernels, %.1f MB, %.1f s (%.1f s of %d processors), NVRTC %s\n",
                report->kernels, megabytes, report->seconds, processor_seconds, jobs,
                nvrtc->version.text().c_str());
  }
  // What is shipped has no faults; a rare combination of features may be slow.
  std::fprintf(stderr, "%s", report->faults.c_str());
  if (report->faults.empty() || every_feature) return 0;
  std::remove(argv[1]);
  return 1;
}
