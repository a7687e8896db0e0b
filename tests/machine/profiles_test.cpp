// tests/machine/profiles_test.cpp: every profile is read in full, and faults are named.
#include <gtest/gtest.h>

#include <algorithm>

#include "tilewright/machine.h"

namespace tilewright {
namespace {

TEST(Profiles, EveryOneHasStoresAndSources) {
  const auto ids = machine_profile_ids();
  EXPECT_EQ(ids.size(), 33u);
  EXPECT_TRUE(std::is_sorted(ids.begin(), ids.end()));
  for (const std::string& id : ids) {
    SCOPED_TRACE(id);
    const Result<Machine> machine = machine_profile(id);
    ASSERT_TRUE(machine.ok()) << machine.status().message();
    EXPECT_EQ(machine->id, id);
    EXPECT_FALSE(machine->name.empty());
    for (const char* tensor : {"q", "k", "v", "s", "o"}) {
      EXPECT_TRUE(std::any_of(machine->stores.begin(), machine->stores.end(), [&](const Store& s) {
        return (" " + s.holds).find(std::string(" ") + tensor) != std::string::npos;
      })) << tensor;
    }
    for (const Store& store : machine->stores) {
      EXPECT_EQ(store.capacity_bytes.known(), !store.capacity_bytes.source.empty());
    }
  }
}

TEST(Profiles, FiguresKeepValueGradeAndSource) {
  const Machine h200 = machine_profile("h200").value();
  EXPECT_EQ(h200.units, 132);
  EXPECT_EQ(h200.arch, "sm_90");
  EXPECT_EQ(h200.memory_bytes_per_second.value, 4.8e12);
  EXPECT_EQ(h200.memory_bytes_per_second.grade, Grade::read);
  EXPECT_NE(h200.memory_bytes_per_second.source.find("H200 datasheet"), std::string::npos);
  EXPECT_EQ(h200.store("shared memory")->capacity_bytes.value, 232448);
  EXPECT_EQ(h200.cache_bytes.grade, Grade::recalled);
}

TEST(Profiles, SplitCoresHaveStoresAndNoPathBetweenThem) {
  const Machine ascend = machine_profile("ascend_910b2").value();
  EXPECT_EQ(ascend.store("L0A")->capacity_bytes.value, 65536);
  EXPECT_EQ(ascend.store("L0C")->capacity_bytes.value, 131072);
  EXPECT_EQ(ascend.store("UB")->count_per_unit, 2);
  for (const Link& link : ascend.links) {
    EXPECT_FALSE(link.from == "L0C" && link.to == "UB") << "cores meet behind the cache only";
  }
  const Machine newer = machine_profile("ascend_950pr").value();
  EXPECT_TRUE(std::any_of(newer.links.begin(), newer.links.end(),
                          [](const Link& link) { return link.from == "L0C" && link.to == "UB"; }));
}

TEST(Profiles, WhatIsNotKnownIsAbsent) {
  const Machine machine = machine_profile("mlu590").value();
  EXPECT_FALSE(machine.bf16_flops_per_second.known());
  EXPECT_FALSE(machine.memory_bytes_per_second.known());
  EXPECT_FALSE(machine.unit_count.known());
}

TEST(Profiles, AnUnknownIdNamesTheNearestAndAll) {
  const Result<Machine> machine = machine_profile("h20O");
  ASSERT_FALSE(machine.ok());
  EXPECT_EQ(machine.status().code(), StatusCode::invalid_argument);
  EXPECT_NE(machine.status().message().find("did you mean b200, h200?"), std::string::npos)
      << machine.status().message();
  EXPECT_NE(machine.status().message().find("ascend_910b2"), std::string::npos);
}

constexpr std::string_view kNpu = R"(
name = "Made-up NPU"
vendor = "Nobody"
arch = "one"
kind = "npu"
unit_kind = "core"
[sources]
sheet = "its data sheet"
[figures]
units = { value = 4, grade = "read", source = "sheet" }
[[store]]
name = "SRAM"
holds = "q k v s o"
unit = "core"
capacity_bytes = { value = 1_000_000, grade = "read", source = "sheet" }
)";

/// The made-up profile with one piece of text replaced.
Result<Machine> with(std::string_view from, std::string_view to) {
  std::string text(kNpu);
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos);
  text.replace(at, from.size(), to);
  return parse_machine(text, "made_up");
}

TEST(Profiles, AProfileOfOnesOwnIsRead) {
  const Result<Machine> machine = parse_machine(kNpu, "made_up");
  ASSERT_TRUE(machine.ok()) << machine.status().message();
  EXPECT_EQ(machine->units, 4);
  EXPECT_EQ(machine->unit_count.source, "its data sheet");
}

TEST(Profiles, FaultsNameLineFieldAndWhatIsAccepted) {
  const struct {
    std::string_view from, to, says;
  } faults[] = {
      {"kind = \"npu\"", "kind = \"toaster\"", "kind is \"toaster\"; accepted: cpu, gpu, npu"},
      {"value = 4", "value = -4", "line 10: units.value"},
      {"grade = \"read\", source = \"sheet\" }\n[[", "grade = \"sure\", source = \"sheet\" }\n[[",
       "units.grade is \"sure\"; accepted: recalled, derived, read, measured"},
      {"units =", "unitz =", "[figures] has a field unitz"},
      {"source = \"sheet\" }\n[[", "source = \"shet\" }\n[[",
       "source \"shet\" is not in [sources]"},
      {"capacity_bytes =", "capacity =", "[[store]] has a field capacity"},
      {"name = \"Made-up NPU\"", "", "name is missing"},
      {"[sources]", "[sources", "line 7"},
  };
  for (const auto& fault : faults) {
    const Result<Machine> machine = with(fault.from, fault.to);
    ASSERT_FALSE(machine.ok()) << fault.to;
    EXPECT_NE(machine.status().message().find(fault.says), std::string::npos)
        << machine.status().message();
  }
}

}  // namespace
}  // namespace tilewright
