// tests/report/report_test.cpp: the walk against closed forms, the hierarchy, and what the page
// holds.
#include "report/report.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <random>
#include <regex>

#include "plan/traffic.h"
#include "report/hierarchy.h"
#include "report/html.h"
#include "report/walk.h"
#include "tilewright/tilewright.h"

namespace tilewright::report {
namespace {

AttentionProblem make_problem(std::int64_t q_len, std::int64_t kv_len, const Mask& mask = {},
                              std::int64_t heads = 1) {
  AttentionSpec spec;
  spec.q_lengths.max_tokens = q_len;
  spec.kv_lengths.max_tokens = kv_len;
  spec.qk_dim = 24;
  spec.v_dim = 40;
  spec.heads = heads;
  spec.mask = mask;
  return AttentionProblem::create(spec).value();
}

Plan make_plan(const AttentionProblem& problem, Tile tile, Schedule schedule = Schedule::q_outer) {
  Plan plan(problem);
  ForwardPlan forward;
  forward.schedule = schedule;
  forward.tile = tile;
  plan.kernel = forward;
  return plan;
}

std::int64_t closed_form(const Walk& walk, const Plan& plan) {
  TrafficShape shape = traffic_shape(plan.problem);
  shape.rule = walk.rule;
  shape.sequences = shape.packed_heads = walk.heads;
  shape.kv_sequences = 1;
  return q_outer_traffic(shape, plan.forward().tile, 1, walk.hand_off).bytes();
}

TEST(ReportWalk, BytesEqualTheClosedForm) {
  std::mt19937 random(20261130);
  const auto between = [&](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  };
  for (int round = 0; round < 300; ++round) {
    Mask mask;
    mask.causal = between(0, 1) == 1;
    mask.diagonal = between(0, 1) == 1 ? Diagonal::top_left : Diagonal::bottom_right;
    mask.window_left = between(0, 2) == 0 ? between(0, 200) : -1;
    const std::int64_t heads = between(1, 3);
    const AttentionProblem problem = make_problem(between(1, 500), between(1, 500), mask, heads);
    Plan plan = make_plan(problem, {heads * between(1, 90), between(1, 90)});
    std::get<ForwardPlan>(plan.kernel).packed_heads = heads;
    if (between(0, 1) == 1)
      plan.traffic.tensors = {
          {between(0, 1) == 1 ? "s" : "lse", 1, 1}, {"p", 1, 1}, {"o", between(0, 1), 1}};
    const auto walk = make_walk(plan, {});
    ASSERT_TRUE(walk) << round;
    EXPECT_EQ(walk->steps.back().bytes_so_far, closed_form(*walk, plan)) << "round " << round;
  }
}

TEST(ReportWalk, SampleRowEndsWithItsWholeSoftmax) {
  Mask mask;
  mask.causal = true;
  const Plan plan = make_plan(make_problem(100, 130, mask), {16, 24});
  const auto score = [](std::int64_t query, std::int64_t key) {
    return std::sin(static_cast<double>(query * 31 + key * 7)) * 4;
  };
  const auto walk = make_walk(plan, score);
  ASSERT_TRUE(walk);
  EXPECT_TRUE(walk->same_lengths);
  EXPECT_FALSE(walk->example_scores);
  double rescaled = 0;
  for (const Step& step : walk->steps) {
    if (step.action != Action::store_o) {
      if (step.rescale < 1 && step.rescale > 0) rescaled += 1;
      continue;
    }
    const std::int64_t row = std::min<std::int64_t>((step.q_tile + 1) * 16, 100) - 1;
    double max = -INFINITY;
    double sum = 0;
    for (std::int64_t key = 0; key <= row + 30; ++key) max = std::max(max, score(row, key));
    for (std::int64_t key = 0; key <= row + 30; ++key) sum += std::exp(score(row, key) - max);
    ASSERT_TRUE(step.max);
    EXPECT_DOUBLE_EQ(*step.max, max);
    EXPECT_NEAR(step.sum, sum, 1e-12 * sum);
  }
  EXPECT_GT(rescaled, 0) << "no step shows a rescale, so the test proves nothing";
}

TEST(ReportWalk, LengthsThatCannotBeDrawnAreReplacedAndSaidSo) {
  for (const std::int64_t tokens : {1, 64, 100, 131072}) {
    for (const Tile tile : {Tile{128, 256}, Tile{32, 512}, Tile{64, 64}, Tile{1, 4096}}) {
      const auto walk = make_walk(make_plan(make_problem(tokens, tokens), tile), {});
      ASSERT_TRUE(walk);
      EXPECT_GE(walk->steps.size(), 6u) << tokens << " " << tile.q_rows << "x" << tile.kv_rows;
      EXPECT_LE(walk->steps.size(), 700u);
      EXPECT_EQ(walk->same_lengths, walk->rule.q_len == tokens && walk->rule.kv_len == tokens);
    }
  }
}

TEST(ReportWalk, RowsThatSeeNoKeyAreOnlyWritten) {
  Mask mask;
  mask.causal = true;  // bottom-right: the first 60 of 100 queries see none of 40 keys
  const auto walk = make_walk(make_plan(make_problem(100, 40, mask), {10, 10}), {});
  ASSERT_TRUE(walk);
  EXPECT_EQ(walk->q_tiles[0].tiles(), 0);
  EXPECT_EQ(walk->steps[0].action, Action::store_o);
}

TEST(ReportWalk, OtherSchedulesAreNotDrawn) {
  EXPECT_FALSE(make_walk(make_plan(make_problem(64, 64), {8, 8}, Schedule::standard), {}));
  EXPECT_FALSE(make_walk(make_plan(make_problem(0, 64), {8, 8}), {}));
}

Store store(const std::string& name, double bytes) {
  Store out;
  out.name = name;
  out.unit = "core";
  out.capacity_bytes = {bytes, Grade::read, "a document"};
  return out;
}

std::vector<std::string> names(const std::vector<Box>& boxes) {
  std::vector<std::string> out;
  for (const Box& box : boxes) out.push_back(box.name);
  return out;
}

TEST(ReportHierarchy, StoresWithoutLinksAreAChain) {
  Machine machine;
  machine.stores = {store("L1", 1e4), store("L2", 1e6), store("L3", 1e7)};
  machine.cache_bytes = {1e7, Grade::queried, ""};
  const auto levels = hierarchy(machine, make_plan(make_problem(8, 8), {4, 4}));
  ASSERT_EQ(levels.size(), 4u);
  EXPECT_EQ(names(levels[0]), std::vector<std::string>{"L1"});
  EXPECT_EQ(names(levels[3]), std::vector<std::string>{"memory"});
}

TEST(ReportHierarchy, LinksPutStoresSideBySide) {
  Machine machine;
  machine.kind = MachineKind::npu;
  machine.cache_bytes = {1e8, Grade::recalled, "a document"};
  machine.stores = {store("L0A", 1e4), store("L0B", 1e4), store("L0C", 1e5), store("L1", 5e5),
                    store("UB", 2e5)};
  const Figure rate{1e11, Grade::read, ""};
  machine.links = {{"L1", "L0A", "core", rate},
                   {"L1", "L0B", "core", rate},
                   {"cache", "L1", "core", rate},
                   {"L0C", "cache", "core", rate},
                   {"cache", "UB", "core", rate}};
  const auto levels = hierarchy(machine, make_plan(make_problem(8, 8), {4, 4}));
  ASSERT_EQ(levels.size(), 4u);
  EXPECT_EQ(names(levels[0]), (std::vector<std::string>{"L0A", "L0B"}));
  EXPECT_EQ(names(levels[1]), (std::vector<std::string>{"L0C", "L1", "UB"}));
  EXPECT_EQ(names(levels[2]), std::vector<std::string>{"cache"});
  EXPECT_EQ(levels[1][1].towards, "L0A");
}

Contents one_entry() {
  Contents contents;
  contents.heading = "a heading";
  contents.machine.name = "a machine";
  contents.entries.push_back(
      {"tiled", make_plan(make_problem(64, 64), {8, 8}), std::nullopt, std::nullopt});
  return contents;
}

nlohmann::json data_of(const std::string& html) {
  const std::string open = "<script type=\"application/json\" id=\"data\">";
  const std::size_t begin = html.find(open) + open.size();
  return nlohmann::json::parse(html.substr(begin, html.find("</script>", begin) - begin));
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++found;
  }
  return found;
}

TEST(ReportPage, HostileTextStaysText) {
  const std::string hostile = "</script><script>alert('1')</script><!-- & \"x\" {{data}}";
  Contents contents = one_entry();
  contents.heading = contents.command = contents.machine.name = hostile;
  contents.entries[0].series = contents.entries[0].plan.reason = hostile;
  contents.entries[0].plan.footprint = {{hostile, hostile, 1}};
  const std::string html = page(contents);
  EXPECT_EQ(html.find("<script>alert"), std::string::npos);
  EXPECT_EQ(count(html, "</script>"), 2u);
  EXPECT_EQ(data_of(html)["series"][0]["name"], hostile);
  EXPECT_EQ(data_of(html)["machine"]["name"], hostile);
}

TEST(ReportPage, LoadsNothing) {
  const std::string html = page(one_entry());
  const std::regex outside(R"((https?:)?//[a-z0-9-]+\.[a-z]|@import|\bsrc=|<link|url\((?!#))");
  std::string text = std::regex_replace(html, std::regex(R"(http://www\.w3\.org/2000/svg)"), "");
  EXPECT_FALSE(std::regex_search(text, outside));
  text += "<img src=\"//example.com/a.png\">";
  EXPECT_TRUE(std::regex_search(text, outside)) << "the pattern finds nothing";
}

TEST(ReportPage, SaysWhatIsNotMeasuredOrModelled) {
  Contents contents = one_entry();
  std::string html = page(contents);
  EXPECT_NE(html.find("not measured"), std::string::npos);
  EXPECT_NE(html.find("not modelled"), std::string::npos);
  EXPECT_TRUE(data_of(html)["plan"]["time"].is_null());

  contents.entries[0].measured_seconds = 0.0123;
  contents.entries[0].plan.time.total_seconds = 0.0456;
  contents.entries[0].plan.traffic.tensors = {{"q", 3 << 20, 0}};
  contents.entries[0].plan.off_chip.tensors = {{"q", 1 << 20, 0}};
  contents.entries[0].measured_memory_bytes = 1 << 20;
  html = page(contents);
  EXPECT_EQ(html.find("not measured"), std::string::npos);
  EXPECT_EQ(html.find("not modelled"), std::string::npos);
  EXPECT_NE(html.find("12.3 ms"), std::string::npos);
  EXPECT_NE(html.find("45.6 ms"), std::string::npos);
  EXPECT_NE(html.find("3 MiB"), std::string::npos);
}

TEST(ReportPage, MarksRecalledFigures) {
  Contents contents = one_entry();
  contents.machine.memory_bytes_per_second = {1.5e12, Grade::read, "a data sheet"};
  EXPECT_EQ(page(contents).find("1.5 TB/s†"), std::string::npos);
  contents.machine.memory_bytes_per_second.grade = Grade::recalled;
  EXPECT_NE(page(contents).find("1.5 TB/s†"), std::string::npos);
}

TEST(ReportPage, ComparesWithTheOtherScheduleAtTheSameLength) {
  Contents contents = one_entry();
  contents.entries[0].measured_seconds = 0.010;
  contents.entries.push_back({"standard", make_plan(make_problem(32, 32), {8, 8}), 0.5, {}});
  EXPECT_EQ(page(contents).find("times less than"), std::string::npos);
  contents.entries.push_back({"standard", make_plan(make_problem(64, 64), {8, 8}), 0.040, {}});
  EXPECT_NE(page(contents).find("4 times less than standard"), std::string::npos);
}

TEST(ReportPage, SweepIsShownWhenThereIsOne) {
  Contents contents = one_entry();
  EXPECT_EQ(page(contents).find("id=\"fig-sweep-time-0\""), std::string::npos);
  SweepPoint fits;
  fits.varied = "keys";
  fits.modelled_seconds = 0.25;
  SweepPoint refused = fits;
  refused.fits = false;
  contents.sweep = {fits, refused};
  const std::string html = page(contents);
  EXPECT_NE(html.find("id=\"fig-sweep-time-0\""), std::string::npos);
  EXPECT_EQ(html.find("id=\"fig-sweep-time-1\""), std::string::npos);
  EXPECT_NE(html.find(">refused<"), std::string::npos);
}

TEST(ReportText, NumbersHaveUnits) {
  EXPECT_EQ(bytes_text(1536), "1.5 KiB");
  EXPECT_EQ(rate_text(4.8e12), "4.8 TB/s");
  EXPECT_EQ(flops_text(989.4e12), "989 TFLOP/s");
  EXPECT_EQ(seconds_text(0.0123), "12.3 ms");
  EXPECT_EQ(count_text(131072), "131,072");
  EXPECT_EQ(count_text(12), "12");
}

}  // namespace
}  // namespace tilewright::report
