// tests/report/sample_page.cpp: writes pages for the browser test to open: usual, and awkward.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <string>

#include "plan/traffic.h"
#include "report/report.h"
#include "tilewright/tilewright.h"

namespace {

using namespace tilewright;
using report::Contents;
using report::Entry;

AttentionSpec spec_of(std::int64_t tokens, bool causal) {
  AttentionSpec spec;
  spec.heads = 8;
  spec.kv_heads = 8;
  spec.q_lengths.max_tokens = spec.kv_lengths.max_tokens = tokens;
  spec.qk_dim = 64;
  spec.mask.causal = causal;
  return spec;
}

Plan plan_of(std::int64_t tokens, bool causal, Schedule schedule) {
  PlanOptions options;
  options.schedule = schedule;
  return plan(AttentionProblem::create(spec_of(tokens, causal)).value(), this_cpu(), options)
      .value();
}

// Figures that no machine, planner or clock gave: only a test may have them.
Machine sample_machine() {
  const auto figure = [](double value, Grade grade) { return Figure{value, grade, "a document"}; };
  Machine machine = this_cpu();
  machine.name = "A sample CPU";
  machine.units = 8;
  machine.stores = {
      {"L1", "", "core", 1, figure(48 << 10, Grade::read), figure(4e11, Grade::read)},
      {"L2", "q k v s p o", "core", 1, figure(1 << 20, Grade::read), figure(2e11, Grade::recalled)},
      {"L3", "", "8 cores", 1, figure(32 << 20, Grade::read), figure(4e11, Grade::recalled)}};
  machine.memory_bytes = figure(64e9, Grade::queried);
  machine.memory_bytes_per_second = figure(4.6e10, Grade::measured);
  machine.f32_flops_per_second = figure(1.1e12, Grade::derived);
  return machine;
}

Entry entry_of(std::int64_t tokens, bool causal, Schedule schedule, bool measured) {
  const bool standard = schedule == Schedule::standard;
  Entry entry{standard ? "standard" : "tiled", plan_of(tokens, causal, schedule), {}, {}};
  Plan& plan = entry.plan;
  const TrafficShape shape = traffic_shape(plan.problem);
  const Tile tile = plan.forward().tile;
  plan.traffic = standard ? standard_traffic(shape, tile, {}) : q_outer_traffic(shape, tile, 1, {});
  plan.off_chip = compulsory_traffic(shape);
  if (standard) plan.off_chip.tensors.push_back({"s", tokens * tokens * 16, tokens * tokens * 16});
  plan.workspace_bytes = standard ? 8 * tokens * tokens * 4 : 0;
  const double flops = plan.problem.flops();
  plan.time = {flops / 6e11, flops / 2e12, static_cast<double>(plan.traffic.bytes()) / 4e10,
               flops / 8e12, 1e-5,         0};
  plan.time.total_seconds =
      std::max(plan.time.matmul_seconds + plan.time.exp_seconds, plan.time.memory_seconds) +
      plan.time.tile_overhead_seconds + plan.time.tail_seconds;
  if (measured) {
    entry.measured_seconds = plan.time.total_seconds * (standard ? 1.3 : 1.12);
    entry.measured_memory_bytes = 20'000'000 + tokens * 8 * 64 * 16 + plan.workspace_bytes;
  }
  return entry;
}

Contents usual() {
  Contents contents;
  contents.heading = "Attention over 2,048 tokens, causal";
  contents.command = "tilewright bench --q-len 2048 --causal bottom-right --report out.html";
  contents.machine = sample_machine();
  for (const Schedule schedule : {Schedule::q_outer, Schedule::standard}) {
    for (const std::int64_t tokens : {512, 1024, 2048, 4096, 8192}) {
      contents.entries.push_back(entry_of(tokens, true, schedule, tokens <= 4096));
    }
  }
  contents.subject = 2;
  for (std::int64_t rows = 16; rows <= 512; rows *= 2) {
    report::SweepPoint& point = contents.sweep.emplace_back();
    point.varied = "query rows";
    point.side = rows;
    point.tile = {rows, 64};
    point.fullest_store = "L2";
    point.fullest_bytes = rows * 64 * 4 * 8 + rows * rows * 4;
    point.fits = point.fullest_bytes <= 1 << 20;
    point.modelled_seconds = 0.1 + 2.0 / static_cast<double>(rows);
    point.traffic_bytes = (std::int64_t{1} << 30) / rows;
  }
  return contents;
}

// Hostile text, a machine of which nothing is known, nothing measured, one short length.
Contents bare() {
  Contents contents;
  contents.heading = "</script><script>alert(1)</script> & {{data}} \"quotes\"";
  contents.machine.name = "<b>unknown</b>";
  contents.machine.unit_kind = "core";
  Entry entry = entry_of(1, false, Schedule::q_outer, false);
  entry.plan.traffic = entry.plan.off_chip = {};
  entry.plan.time = {};
  entry.plan.footprint.clear();
  entry.plan.reason = "</script>";
  contents.entries.push_back(std::move(entry));
  return contents;
}

}  // namespace

int main(int argument_count, char** arguments) {
  if (argument_count != 2) return std::fprintf(stderr, "usage: sample_page DIRECTORY\n"), 2;
  const std::string directory = arguments[1];
  std::ofstream(directory + "/usual.html") << report::page(usual());
  std::ofstream(directory + "/bare.html") << report::page(bare());
  return 0;
}
