// tests/cuda/device_test.cpp: what the driver tells of a device, laid over a profile.
#include "backend/cuda/device.h"

#include <gtest/gtest.h>

#include "tests/cuda/fake_driver.h"

namespace tilewright::cuda {
namespace {

class Device : public testing::Test {
 protected:
  void SetUp() override {
    fake_driver().reset();
    fake_driver().memory_bytes = 150'000'000'000;
    fake_driver().attributes = {{DeviceAttribute::compute_capability_major, 9},
                                {DeviceAttribute::compute_capability_minor, 0},
                                {DeviceAttribute::multiprocessor_count, 132},
                                {DeviceAttribute::shared_memory_per_block_optin_bytes, 232448},
                                {DeviceAttribute::registers_per_multiprocessor, 65536},
                                {DeviceAttribute::l2_cache_size_bytes, 62914560},
                                {DeviceAttribute::clock_rate_khz, 1980000},
                                {DeviceAttribute::memory_clock_rate_khz, 3201000},
                                {DeviceAttribute::memory_bus_width_bits, 6144}};
  }
};

TEST_F(Device, EveryFigureIsQueriedInItsUnit) {
  const Result<DeviceFacts> facts = query_device(fake_driver_api(), 0);
  ASSERT_TRUE(facts.ok()) << facts.status().message();
  EXPECT_EQ(facts->name, "NVIDIA H200");
  EXPECT_EQ(facts->multiprocessors, 132);
  EXPECT_EQ(facts->shared_bytes_per_block_optin, 232448);
  EXPECT_EQ(facts->registers_per_multiprocessor, 65536);
  EXPECT_DOUBLE_EQ(facts->clock_hz, 1.98e9);
  EXPECT_DOUBLE_EQ(facts->memory_bytes, 1.5e11);
  EXPECT_NEAR(facts->memory_bytes_per_second, 4.917e12, 1e9);
}

TEST_F(Device, OverlayReplacesWhatTheDriverSaysAndKeepsTheRest) {
  Machine profile;
  profile.id = "h200";
  profile.units = 1;
  profile.bf16_flops_per_second = {9.894e14, Grade::read, "a document"};
  profile.clock_hz = {1.83e9, Grade::read, "a document"};
  profile.stores.push_back({"shared memory",
                            "q k v",
                            "SM",
                            1,
                            {1000, Grade::read, "a document"},
                            {33e12, Grade::derived, "x"}});
  const Machine machine = overlay(profile, *query_device(fake_driver_api(), 0));
  EXPECT_EQ(machine.id, "h200");
  EXPECT_EQ(machine.kind, MachineKind::gpu);
  EXPECT_EQ(machine.units, 132);
  EXPECT_EQ(machine.unit_count.grade, Grade::queried);
  EXPECT_EQ(machine.clock_hz.grade, Grade::queried);
  EXPECT_EQ(machine.registers_bytes_per_unit.value, 262144);
  ASSERT_EQ(machine.stores.size(), 1u);
  EXPECT_EQ(machine.stores[0].capacity_bytes, (Figure{232448, Grade::queried, "CUDA driver"}));
  EXPECT_EQ(machine.stores[0].bandwidth_bytes_per_second,
            profile.stores[0].bandwidth_bytes_per_second);
  EXPECT_EQ(machine.bf16_flops_per_second, profile.bf16_flops_per_second);
}

TEST_F(Device, FiguresTheDriverDoesNotGiveStayAsTheProfileHasThem) {
  fake_driver().attributes[DeviceAttribute::clock_rate_khz] = 0;
  fake_driver().attributes[DeviceAttribute::memory_clock_rate_khz] = 0;
  Machine profile;
  profile.memory_bytes_per_second = {4.8e12, Grade::read, "a document"};
  const Machine machine = overlay(profile, *query_device(fake_driver_api(), 0));
  EXPECT_FALSE(machine.clock_hz.known());
  EXPECT_EQ(machine.memory_bytes_per_second, profile.memory_bytes_per_second);
}

TEST_F(Device, ProfileIsMatchedByArchitectureModelAndUnits) {
  const auto profile = [](const char* id, const char* name, const char* arch, std::int64_t units) {
    Machine machine;
    machine.id = id;
    machine.name = name;
    machine.arch = arch;
    machine.units = units;
    return machine;
  };
  const Machine profiles[] = {profile("h100_pcie", "H100 PCIe 80GB", "sm_90", 114),
                              profile("h100_sxm", "H100 SXM5 80GB", "sm_90", 132),
                              profile("h200", "H200 SXM 141GB", "sm_90", 132),
                              profile("gh200_144", "GH200 144GB HBM3e", "sm_90", 132),
                              profile("rtx4090", "GeForce RTX 4090", "sm_89", 128),
                              profile("odd", "H200", "sm_80", 132)};
  const auto match = [&](const char* device, int major, int minor, int units) {
    return matching_profile(profiles, {device, major, minor, units, 0, 0, 0, 0, 0, 0}).id;
  };
  EXPECT_EQ(match("NVIDIA H200", 9, 0, 132), "h200");
  EXPECT_EQ(match("NVIDIA H100 80GB HBM3", 9, 0, 132), "h100_sxm");
  EXPECT_EQ(match("NVIDIA H100 PCIe", 9, 0, 114), "h100_pcie");
  EXPECT_EQ(match("NVIDIA GH200 480GB", 9, 0, 132), "gh200_144");
  EXPECT_EQ(match("NVIDIA GeForce RTX 4090", 8, 9, 128), "rtx4090");
  EXPECT_EQ(match("NVIDIA B300", 10, 3, 148), "");
}

TEST_F(Device, FailedQueryNamesTheAttributeAndTheDevice) {
  fake_driver().attribute_result = DriverResult::invalid_value;
  const Result<DeviceFacts> facts = query_device(fake_driver_api(), 0);
  ASSERT_FALSE(facts.ok());
  EXPECT_NE(facts.status().message().find("NVIDIA H200"), std::string::npos)
      << facts.status().message();
}

}  // namespace
}  // namespace tilewright::cuda
