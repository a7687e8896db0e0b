// tests/cuda/gpu_main.cpp: main of the GPU tests: without a Hopper GPU they skip, saying why,
// unless one is required.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "backend/cuda/device_session.h"

namespace {

constexpr int kSkipped = 77;  // what CTest takes for a skip

using tilewright::cuda::DeviceAttribute;
using tilewright::cuda::DeviceSession;

/// Why there is no GPU to test on; empty when there is.
std::string missing_gpu() {
  const tilewright::Result<DeviceSession> session = DeviceSession::open();
  if (!session.ok()) return session.status().message();
  int major = 0;
  (void)session->api().device_get_attribute(&major, DeviceAttribute::compute_capability_major, 0);
  if (major == 9) return {};
  return "GPU 0 has compute capability " + std::to_string(major) + ".x; these tests need 9.0";
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (testing::GTEST_FLAG(list_tests)) return RUN_ALL_TESTS();
  const std::string missing = missing_gpu();
  if (missing.empty()) return RUN_ALL_TESTS();
  const char* required = std::getenv("TILEWRIGHT_REQUIRE_GPU");
  const bool fails = required != nullptr && std::string_view(required) == "1";
  std::printf("%s: %s\n", fails ? "FAILED, since TILEWRIGHT_REQUIRE_GPU is 1" : "SKIPPED",
              missing.c_str());
  return fails ? 1 : kSkipped;
}
