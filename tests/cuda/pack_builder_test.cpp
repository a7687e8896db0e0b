// tests/cuda/pack_builder_test.cpp: what the builder of the pack judges, with a fault of each kind
// planted.
#include "backend/cuda/pack_builder.h"

#include <gtest/gtest.h>

#include "tests/cuda/fake_nvrtc.h"
#include "tests/cuda/scratch_folder.h"

namespace tilewright::cuda {
namespace {

class PackBuilder : public testing::Test {
 protected:
  static constexpr int kRegisters = 168;

  void SetUp() override {
    fake_nvrtc().reset();
    fake_nvrtc().cubin = fake_cubin("k", kRegisters, 0, 0);
  }

  static std::vector<KernelSource> sources(int count) {
    std::vector<KernelSource> all(static_cast<std::size_t>(count));
    for (KernelSource& source : all) {
      source.name = "kernel " + std::to_string(&source - all.data());
      source.entry = "k";
      source.planned_registers = kRegisters;
    }
    return all;
  }

  Result<PackReport> build(int count, int jobs) {
    return build_pack(file(), open_fake_nvrtc(), sources(count), jobs);
  }

  std::filesystem::path file() const { return folder_.path() / "a.pack"; }

  ScratchFolder folder_;
};

TEST_F(PackBuilder, CompilesEachKernelOnceOnSeveralThreadsAndKeepsACurrentPack) {
  Result<PackReport> report = build(20, 4);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->faults, "");
  EXPECT_EQ(report->kernels, 20);
  EXPECT_EQ(report->file_bytes, std::filesystem::file_size(file()));
  EXPECT_EQ(fake_nvrtc().compilations, 20);
  const Result<KernelPack> pack = KernelPack::open(file());
  ASSERT_TRUE(pack.ok()) << pack.status().message();
  for (const KernelSource& source : sources(20)) EXPECT_TRUE(pack->contains(source.key()));

  report = build(20, 4);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(fake_nvrtc().compilations, 20) << "it was already there";
  report = build(21, 4);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(fake_nvrtc().compilations, 41) << "another list of kernels";
}

TEST_F(PackBuilder, ReportsEveryKindOfPlantedFaultWithItsKernel) {
  struct Planted {
    const char* what;
    unsigned registers, stack_bytes, shared_bytes;
    const char* log;
  };
  for (const Planted& planted :
       {Planted{"160 registers a thread; planned: 168", 160, 0, 0, ""},
        Planted{"176 registers a thread; planned: 168", 176, 0, 0, ""},
        Planted{"24 bytes of local memory", kRegisters, 24, 0, ""},
        Planted{"bytes of static shared memory", kRegisters, 0, 4096, ""},
        Planted{"8 bytes spill stores", kRegisters, 0, 0,
                "ptxas . 0 bytes stack frame, 8 bytes spill stores, 0 bytes spill loads"},
        Planted{"C7510", kRegisters, 0, 0,
                "ptxas info : (C7510) Potential Performance Loss: wgmma serialized"}}) {
    fake_nvrtc().cubin =
        fake_cubin("k", planted.registers, planted.stack_bytes, planted.shared_bytes);
    fake_nvrtc().log = planted.log;
    std::filesystem::remove(file());
    const Result<PackReport> report = build(1, 1);
    ASSERT_TRUE(report.ok()) << report.status().message();
    EXPECT_NE(report->faults.find("kernel 0: "), std::string::npos) << planted.what;
    EXPECT_NE(report->faults.find(planted.what), std::string::npos) << report->faults;
  }
}

TEST_F(PackBuilder, MatrixInstructionsThatAreNotThereAreAFault) {
  std::vector<KernelSource> kernels = sources(1);
  kernels[0].planned_matrix_instructions = 1;
  const Result<PackReport> report = build_pack(file(), open_fake_nvrtc(), kernels, 1);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_NE(report->faults.find("0 matrix instructions; planned: 1 or more"), std::string::npos);
}

TEST_F(PackBuilder, AKernelThatDoesNotCompileLeavesNoPack) {
  fake_nvrtc().compile_result = NvrtcResult::compilation;
  fake_nvrtc().log = "no such thing";
  const Result<PackReport> report = build(3, 2);
  ASSERT_FALSE(report.ok());
  EXPECT_NE(report.status().message().find("kernel 2"), std::string::npos);
  EXPECT_NE(report.status().message().find("no such thing"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(file()));
}

}  // namespace
}  // namespace tilewright::cuda
