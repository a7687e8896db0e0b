// tests/machine/this_cpu_test.cpp: discovery, on planted file trees and on the machine at hand.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "machine/clock.h"
#include "machine/instruction_set.h"
#include "machine/sysfs.h"
#include "tilewright/machine.h"

namespace tilewright {
namespace {

namespace fs = std::filesystem;

/// A file tree of its own for each test.
class Discovery : public ::testing::Test {
 protected:
  Discovery() {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    root_ = fs::temp_directory_path() / (std::string("tilewright_") + test->name());
    fs::remove_all(root_);
  }
  ~Discovery() override { fs::remove_all(root_); }

  void plant(const std::string& file, const std::string& text) {
    fs::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text << "\n";
  }

  fs::path root_;
};

TEST_F(Discovery, ReadsProcessorLists) {
  EXPECT_EQ(machine::parse_cpu_list("0-2,5,8-9"), (std::vector<int>{0, 1, 2, 5, 8, 9}));
  EXPECT_EQ(machine::parse_cpu_list("7"), std::vector<int>{7});
  EXPECT_TRUE(machine::parse_cpu_list("").empty());
}

TEST_F(Discovery, ReadsSizes) {
  EXPECT_EQ(machine::parse_size_bytes("32K"), 32768);
  EXPECT_EQ(machine::parse_size_bytes("1M"), 1048576);
  EXPECT_EQ(machine::parse_size_bytes("512"), 512);
  EXPECT_EQ(machine::parse_size_bytes("none"), 0);
}

TEST_F(Discovery, QuotaVersion2IsTheLeastOnTheWayUp) {
  plant("proc/self/cgroup", "0::/a/b");
  plant("sys/fs/cgroup/a/b/cpu.max", "max 100000");
  plant("sys/fs/cgroup/a/cpu.max", "150000 100000");
  EXPECT_DOUBLE_EQ(machine::quota_cores(root_).value(), 1.5);
  plant("sys/fs/cgroup/a/b/cpu.max", "50000 100000");
  EXPECT_DOUBLE_EQ(machine::quota_cores(root_).value(), 0.5);
}

TEST_F(Discovery, QuotaVersion1ReadsTheControllerOfCpuTime) {
  plant("proc/self/cgroup", "4:memory:/m\n3:cpu,cpuacct:/docker/x\n2:cpuset:/y");
  plant("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "400000");
  plant("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000");
  plant("sys/fs/cgroup/cpuset/cpu.cfs_quota_us", "100000");
  plant("sys/fs/cgroup/cpuset/cpu.cfs_period_us", "100000");
  EXPECT_DOUBLE_EQ(machine::quota_cores(root_).value(), 4.0);
}

TEST_F(Discovery, NoQuotaIsNone) {
  EXPECT_FALSE(machine::quota_cores(root_).has_value());
  plant("proc/self/cgroup", "1:cpu:/");
  plant("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1");
  plant("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000");
  EXPECT_FALSE(machine::quota_cores(root_).has_value());
}

TEST_F(Discovery, CachesAreNearestFirstWithoutInstructionCaches) {
  const std::string base = "sys/devices/system/cpu/cpu3/cache/";
  const auto cache = [&](const std::string& index, const std::string& level,
                         const std::string& type, const std::string& size,
                         const std::string& shared) {
    plant(base + index + "/level", level);
    plant(base + index + "/type", type);
    plant(base + index + "/size", size);
    plant(base + index + "/shared_cpu_list", shared);
  };
  cache("index0", "3", "Unified", "32768K", "0-7");
  cache("index1", "1", "Instruction", "64K", "3");
  cache("index2", "1", "Data", "48K", "3");
  cache("index3", "2", "Unified", "2048K", "3");
  const auto caches = machine::caches(root_, 3);
  ASSERT_EQ(caches.size(), 3u);
  EXPECT_EQ(caches[0].bytes, 48 << 10);
  EXPECT_EQ(caches[1].bytes, 2 << 20);
  EXPECT_EQ(caches[2].bytes, 32 << 20);
  EXPECT_EQ(caches[2].shared_by.size(), 8u);
}

TEST_F(Discovery, ThreadsOfOneCoreCountOnce) {
  for (const int cpu : {0, 1, 2, 3}) {
    plant("sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/thread_siblings_list",
          cpu % 2 == 0 ? "0,2" : "1,3");
  }
  EXPECT_EQ(machine::physical_cores(root_, {0, 1, 2, 3}), 2);
  EXPECT_EQ(machine::physical_cores(root_, {0, 2}), 1);
  EXPECT_EQ(machine::physical_cores("/nowhere", {0, 1, 2}), 3);
}

TEST_F(Discovery, CountsTheMemoryDomainsOfUsableProcessors) {
  plant("sys/devices/system/node/online", "0-1");
  plant("sys/devices/system/node/node0/cpulist", "0-3");
  plant("sys/devices/system/node/node1/cpulist", "4-7");
  EXPECT_EQ(machine::numa_nodes(root_, {1, 5}), 2);
  EXPECT_EQ(machine::numa_nodes(root_, {1, 2}), 1);
  EXPECT_EQ(machine::numa_nodes("/nowhere", {1, 2}), 1);
}

TEST_F(Discovery, ClockPrefersTheHighest) {
  plant("proc/cpuinfo", "processor : 0\ncpu MHz\t\t: 2596.138");
  EXPECT_DOUBLE_EQ(machine::clock_hz(root_, 0).value(), 2596.138e6);
  plant("sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq", "3700000");
  EXPECT_DOUBLE_EQ(machine::clock_hz(root_, 0).value(), 3.7e9);
}

TEST(ThisCpu, HasCoresCachesAndAName) {
  const Machine cpu = this_cpu();
  EXPECT_EQ(cpu.id, "cpu");
  EXPECT_EQ(cpu.kind, MachineKind::cpu);
  EXPECT_FALSE(cpu.name.empty());
  EXPECT_GE(cpu.units, 1);
  const Store* l1 = cpu.store("L1");
  const Store* l2 = cpu.store("L2");
  ASSERT_NE(l1, nullptr);
  ASSERT_NE(l2, nullptr);
  EXPECT_GE(l1->capacity_bytes.value, 8 << 10);
  EXPECT_GT(l2->capacity_bytes.value, l1->capacity_bytes.value);
  EXPECT_TRUE(l2->capacity_bytes.known());
}

TEST(ThisCpu, ClockIsAtLeastWhatTheSystemSaysAndRatesFollowIt) {
  const Machine cpu = this_cpu();
  const auto told = machine::clock_hz("/", 0);
  EXPECT_GE(cpu.clock_hz.value, told.value_or(0));
  const double flops_per_clock = machine::this_processor().f32_flops_per_clock;
  EXPECT_DOUBLE_EQ(cpu.f32_flops_per_second.value,
                   cpu.clock_hz.value * static_cast<double>(cpu.units) * flops_per_clock);
}

TEST(Clock, OfACoreIsOneThatProcessorsHave) {
  const auto hz = machine::measure_clock_hz();
#if defined(__x86_64__) || defined(__aarch64__)
  ASSERT_TRUE(hz.has_value());
#else
  if (!hz) return;
#endif
  // A chain that took less than a clock an addition would give more than any processor has; loads
  // of other work slow one down, but not ten times in every try.
  EXPECT_GT(*hz, 1e8);
  EXPECT_LT(*hz, 8e9);
}

#if defined(__x86_64__)
TEST(ThisCpu, FeaturesAgreeWithTheCompilersOwnQuestion) {
  const auto has = [features = this_cpu().features](std::string_view feature) {
    return std::find(features.begin(), features.end(), feature) != features.end();
  };
  EXPECT_EQ(has("avx2"), __builtin_cpu_supports("avx2") != 0);
  EXPECT_EQ(has("fma"), __builtin_cpu_supports("fma") != 0);
  EXPECT_EQ(has("avx512f"), __builtin_cpu_supports("avx512f") != 0);
  EXPECT_EQ(has("avx512_bf16"), __builtin_cpu_supports("avx512bf16") != 0);
}
#endif

TEST(ThisCpu, IsAskedOnce) {
  // A clock that was timed again would differ.
  const Machine first = this_cpu();
  for (int i = 0; i < 100; ++i) EXPECT_EQ(this_cpu(), first);
}

}  // namespace
}  // namespace tilewright
