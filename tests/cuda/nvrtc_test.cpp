// tests/cuda/nvrtc_test.cpp: where the run-time compiler is looked for, and what is said when it is
// not there.
#include "backend/cuda/nvrtc.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "tests/cuda/scratch_folder.h"

namespace tilewright::cuda {
namespace {

namespace fs = std::filesystem;

class Environment {
 public:
  Environment(const char* variable, const std::string& value) : variable_(variable) {
    if (const char* old = std::getenv(variable)) old_ = old, had_ = true;
    setenv(variable, value.c_str(), 1);
  }
  ~Environment() { had_ ? setenv(variable_, old_.c_str(), 1) : unsetenv(variable_); }

 private:
  const char* variable_;
  std::string old_;
  bool had_ = false;
};

bool contains(const std::vector<std::string>& list, const fs::path& item) {
  return std::find(list.begin(), list.end(), item.string()) != list.end();
}

TEST(Nvrtc, ChosenFileIsTheOnlyCandidate) {
  const Environment chosen("TILEWRIGHT_NVRTC", "/opt/somewhere/libnvrtc.so.13");
  EXPECT_EQ(nvrtc_candidates(), std::vector<std::string>{"/opt/somewhere/libnvrtc.so.13"});
}

TEST(Nvrtc, ChosenFolderIsSearchedNewestFirst) {
  const ScratchFolder folder;
  for (const char* file : {"libnvrtc.so.12", "libnvrtc.so.13"})
    write_bytes(folder.path() / file, "");
  const Environment chosen("TILEWRIGHT_NVRTC", folder.path().string());
  EXPECT_EQ(nvrtc_candidates(),
            (std::vector<std::string>{(folder.path() / "libnvrtc.so.13").string(),
                                      (folder.path() / "libnvrtc.so.12").string()}));
}

TEST(Nvrtc, PipPackagesAreFoundInAVirtualEnvironmentAndOnThePythonPath) {
  const ScratchFolder environment;
  const ScratchFolder site;
  const fs::path in_environment =
      environment.path() / "lib/python3.12/site-packages/nvidia/cu13/lib";
  const fs::path in_site = site.path() / "nvidia/cuda_nvrtc/lib";
  fs::create_directories(in_environment);
  fs::create_directories(in_site);
  write_bytes(in_environment / "libnvrtc.so.13", "");
  write_bytes(in_site / "libnvrtc.so.12", "");
  const Environment chosen("TILEWRIGHT_NVRTC", "");
  const Environment active("VIRTUAL_ENV", environment.path().string());
  const Environment path("PYTHONPATH", ":" + site.path().string());
  const std::vector<std::string> candidates = nvrtc_candidates();
  EXPECT_TRUE(contains(candidates, in_environment / "libnvrtc.so.13"));
  EXPECT_TRUE(contains(candidates, in_site / "libnvrtc.so.12"));
  EXPECT_TRUE(contains(candidates, "libnvrtc.so.13")) << "the system's search path comes last";
}

TEST(Nvrtc, AbsenceNamesEveryPlaceAndTheRemedy) {
  const Result<Nvrtc> opened = open_newest_nvrtc({"/nowhere/libnvrtc.so.13", "libm.so.6"});
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.status().code(), StatusCode::unavailable);
  for (const char* part : {"/nowhere/libnvrtc.so.13", "libm.so.6 lacks nvrtcGetErrorString",
                           "nvidia-cuda-nvrtc", "TILEWRIGHT_NVRTC"}) {
    EXPECT_NE(opened.status().message().find(part), std::string::npos) << opened.status().message();
  }
}

TEST(Nvrtc, IsTrustedFrom13Point3) {
  Nvrtc compiler;
  compiler.version = {13, 2};
  EXPECT_FALSE(compiler.trusted());
  compiler.version = {13, 3};
  EXPECT_TRUE(compiler.trusted());
  compiler.version = {14, 0};
  EXPECT_TRUE(compiler.trusted());
}

}  // namespace
}  // namespace tilewright::cuda
