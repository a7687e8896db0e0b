// src/plan/time_model.cpp: modelled time of each schedule.
#include "plan/time_model.h"

#include <algorithm>
#include <cmath>

namespace tilewright {
namespace {

using schedule::ceil_div;
using schedule::max;
using schedule::min;

/// Part of the last-level cache that re-reads can count on (FlashAttention-3 budgets 32 of 50 MB).
constexpr double kCacheShare = 0.64;

double seconds(double amount, double rate) {
  return rate > 0 ? amount / rate : 0;
}

Index rounded(Index value, Index granule) {
  return ceil_div(value, granule) * granule;
}

/// The longest of the times, and the part of the others that does not hide behind it.
double overlapped(std::initializer_list<double> times, double overlap) {
  double longest = 0;
  double sum = 0;
  for (const double time : times) {
    longest = std::max(longest, time);
    sum += time;
  }
  return longest + (1 - overlap) * (sum - longest);
}

/// Bytes that one pair of tiles, or one query tile, sends over a link.
double link_bytes(const LinkUse& use, const TileShape& t) {
  const auto q = static_cast<double>(t.tile.q_rows);
  const auto kv = static_cast<double>(t.tile.kv_rows);
  const auto element = static_cast<double>(t.element_bytes);
  switch (use.tensor) {
    case TileTensor::q:
      return q * static_cast<double>(t.qk_dim) * element;
    case TileTensor::k:
      return kv * static_cast<double>(t.qk_dim) * element;
    case TileTensor::v:
      return kv * static_cast<double>(t.v_dim) * element;
    case TileTensor::s:
      return q * kv * 4;
    case TileTensor::p:
      return q * kv * element;
    case TileTensor::o:
      return q * static_cast<double>(t.v_dim) * 4;
  }
  return 0;
}

/// Time that the busiest link needs.
double link_seconds(const TimeInputs& in, const TileShape& tile, bool once) {
  double busy[16] = {};
  double longest = 0;
  for (const LinkUse& use : in.placement->links) {
    if (use.once != once || use.link >= std::size(busy)) continue;
    const double rate = link_bytes_per_second(*in.machine, in.machine->links[use.link]);
    busy[use.link] += seconds(link_bytes(use, tile), rate);
    longest = std::max(longest, busy[use.link]);
  }
  return longest;
}

struct PairTimes {
  double matmul = 0;
  double exp = 0;  ///< and other vector work
  double link = 0;
  double overhead = 0;
};

PairTimes pair_times(const TimeInputs& in, const TileShape& t) {
  const KernelCosts& costs = in.costs;
  const auto rows = static_cast<double>(rounded(t.tile.q_rows, costs.row_granule));
  const auto keys = static_cast<double>(rounded(t.tile.kv_rows, costs.key_granule));
  const double scores = rows * keys;
  PairTimes times;
  times.matmul = seconds(2 * static_cast<double>(t.qk_dim + t.v_dim) * scores,
                         in.rates.matmul_flops_per_second * costs.matmul_efficiency);
  const double rescale = rows * static_cast<double>(t.v_dim);
  times.exp =
      seconds(scores, in.rates.exp_per_second) +
      seconds(costs.vector_ops_per_score * scores + rescale, in.rates.vector_ops_per_second);
  times.link = link_seconds(in, t, false);
  times.overhead = costs.pair_clocks / in.rates.clock_hz;
  return times;
}

double bytes(const Traffic& traffic) {
  return static_cast<double>(traffic.bytes());
}

double off_chip_seconds(const TimeInputs& in, Schedule schedule, const Traffic& traffic,
                        const Tile& tile) {
  return seconds(bytes(off_chip_traffic(in.shape, schedule, traffic, tile, *in.machine)),
                 in.machine->memory_bytes_per_second.value);
}

/// Sums over all units become elapsed time: `items` of equal length, or a band of unequal ones.
double tail_seconds(double items, double units, double busy, double longest_item) {
  if (items <= 0) return 0;
  const double mean = busy * units / items;
  if (longest_item < 1.05 * mean) return std::max(0.0, std::ceil(items / units) * mean - busy);
  return std::max(longest_item - busy, 0.5 * longest_item * (1 - 1 / units));
}

Index score_bytes(const TrafficShape& s) {
  return s.sequences * s.rule.q_len * s.rule.kv_len * s.element_bytes;
}

void keep(Traffic& traffic, std::string_view tensor, Index read, Index written) {
  for (TensorTraffic& t : traffic.tensors) {
    if (t.tensor != tensor) continue;
    t.bytes_read = min(t.bytes_read, read);
    t.bytes_written = min(t.bytes_written, written);
  }
}

}  // namespace

KernelCosts profile_costs(const Machine& machine) {
  // Plausible numbers, good for comparing tiles: published kernels reach about three quarters of
  // the peak at head dim 128 on GPUs, and barriers cost on the order of a hundred clocks.
  KernelCosts costs;
  costs.matmul_efficiency = 0.95;
  costs.row_granule = 16;
  costs.key_granule = 16;
  switch (machine.kind) {
    case MachineKind::gpu:
      costs.pair_clocks = 120;
      costs.query_tile_clocks = 2000;
      costs.launch_seconds = 3e-6;
      break;
    case MachineKind::npu:
      costs.overlap = 0.75;
      costs.pair_clocks = 300;
      costs.query_tile_clocks = 3000;
      costs.launch_seconds = 1e-5;
      break;
    case MachineKind::cpu:
      costs.overlap = 0;
      costs.matmul_efficiency = 0.8;
      costs.vector_ops_per_score = 8;
      costs.pair_clocks = 500;
      costs.query_tile_clocks = 2000;
      costs.row_granule = 1;
      break;
  }
  return costs;
}

const Figure& matmul_figure(const Machine& machine, DType dtype) {
  const bool cpu = machine.kind == MachineKind::cpu;
  if (dtype == DType::bf16 && (machine.bf16_flops_per_second.known() || !cpu)) {
    return machine.bf16_flops_per_second;
  }
  if (dtype == DType::f16 && (machine.f16_flops_per_second.known() || !cpu)) {
    return machine.f16_flops_per_second;
  }
  return machine.f32_flops_per_second;
}

UnitRates unit_rates(const Machine& machine, DType dtype) {
  const auto units = static_cast<double>(max(1, machine.units));
  UnitRates rates;
  rates.matmul_flops_per_second = matmul_figure(machine, dtype).value / units;
  // A multiply-add counts as two FLOP, as one operation here.
  rates.vector_ops_per_second = machine.f32_flops_per_second.value / 2 / units;
  rates.exp_per_second = machine.exp_per_second.value / units;
  if (rates.exp_per_second == 0) {
    // A polynomial of degree five and its range reduction take about ten operations.
    rates.exp_per_second = rates.vector_ops_per_second / 10;
  }
  if (machine.clock_hz.known()) rates.clock_hz = machine.clock_hz.value;
  return rates;
}

double link_bytes_per_second(const Machine& machine, const Link& link) {
  if (link.unit == "device") {
    return link.bytes_per_second.value / static_cast<double>(max(1, machine.units));
  }
  for (const Store& store : machine.stores) {
    if (store.unit == link.unit && store.count_per_unit > 1) {
      return link.bytes_per_second.value * static_cast<double>(store.count_per_unit);
    }
  }
  return link.bytes_per_second.value;
}

Traffic off_chip_traffic(const TrafficShape& s, Schedule schedule, const Traffic& traffic,
                         const Tile& tile, const Machine& machine) {
  Traffic off_chip = traffic;
  if (!machine.cache_bytes.known() || s.sequences == 0 || s.rule.q_len == 0) return off_chip;
  const double cache = kCacheShare * machine.cache_bytes.value;
  const Traffic least = compulsory_traffic(s);
  const auto compulsory = [&](std::string_view tensor) {
    for (const TensorTraffic& t : least.tensors) {
      if (t.tensor == tensor) return t;
    }
    return TensorTraffic{};
  };
  const Index kv_heads = max(1, s.kv_sequences);
  const Index kv_bytes = (compulsory("k").bytes_read + compulsory("v").bytes_read) / kv_heads;
  // Query tiles that walk the keys of one kv head, and how many of all walk at once.
  const Index walks =
      max(1, key_walks(s) / kv_heads) * ceil_div(s.rule.q_len, tile_tokens(s, tile));
  const Index at_once = max(1, machine.units);
  const Index active = min(kv_heads, ceil_div(at_once, walks));
  const bool kv_fits = static_cast<double>(active * kv_bytes) <= cache;
  const Index rounds = kv_fits ? 1 : max(1, ceil_div(walks, at_once));
  keep(off_chip, "k", compulsory("k").bytes_read * rounds, 0);
  keep(off_chip, "v", compulsory("v").bytes_read * rounds, 0);
  const bool scores_fit = static_cast<double>(2 * score_bytes(s)) <= cache;
  switch (schedule) {
    case Schedule::q_outer:
      keep(off_chip, "q", compulsory("q").bytes_read, 0);
      keep(off_chip, "o", 0, compulsory("o").bytes_written);
      keep(off_chip, "s", 0, 0);  // handed over and gone
      keep(off_chip, "p", 0, 0);
      break;
    case Schedule::kv_outer: {
      const Index heads = min(s.sequences, at_once);
      const Index state = s.rule.q_len * (s.qk_dim * s.element_bytes + s.v_dim * 4 + 8);
      if (static_cast<double>(heads * state) <= cache) {
        keep(off_chip, "q", compulsory("q").bytes_read, 0);
        keep(off_chip, "o", 0, s.sequences * s.rule.q_len * s.v_dim * 4);
        keep(off_chip, "lse", 0, s.sequences * s.rule.q_len * 8);
      }
      break;
    }
    case Schedule::standard:
      if (scores_fit) {
        keep(off_chip, "s", 0, 0);
        keep(off_chip, "p", 0, 0);
      }
      break;
  }
  return off_chip;
}

TimeModel q_outer_time(const TimeInputs& in, const TileShape& t, Index kv_splits) {
  TimeModel time;
  if (in.rates.matmul_flops_per_second <= 0) return time;
  const TrafficShape& s = in.shape;
  const auto units = static_cast<double>(max(1, in.machine->units));
  const Index tokens = tile_tokens(s, t.tile);
  const WalkSums sums = walk_sums(s.rule, tokens, t.tile.kv_rows);
  const auto walks = static_cast<double>(key_walks(s));
  const double pairs = walks * static_cast<double>(sums.tiles);
  const double items = walks * static_cast<double>(ceil_div(s.rule.q_len, tokens) * kv_splits);
  const PairTimes pair = pair_times(in, t);
  // Loads of a tile in flight cost nothing until they are the longest; with one tile alone, they
  // hide behind the arithmetic of other blocks at best.
  const double arithmetic = overlapped({pair.matmul, pair.exp}, in.costs.overlap);
  const double steady =
      t.stages > 1 ? std::max(arithmetic, pair.link) : arithmetic + 0.5 * pair.link;
  const double once = in.costs.query_tile_clocks / in.rates.clock_hz + link_seconds(in, t, true);
  time.matmul_seconds = pairs * pair.matmul / units;
  time.exp_seconds = pairs * pair.exp / units;
  time.tile_overhead_seconds = (pairs * pair.overhead + items * once) / units;
  const double busy = pairs * steady / units + time.tile_overhead_seconds;
  const double longest =
      std::ceil(static_cast<double>(sums.most_tiles) / static_cast<double>(kv_splits)) *
          (steady + pair.overhead) +
      once;
  time.tail_seconds = tail_seconds(items, units, busy, longest);
  const Traffic traffic = q_outer_traffic(s, t.tile, kv_splits, in.placement->hand_off);
  const double memory = off_chip_seconds(in, Schedule::q_outer, traffic, t.tile);
  time.memory_seconds = std::max(memory, pairs * pair.link / units);
  time.total_seconds = std::max(busy + time.tail_seconds, memory) +
                       in.costs.launch_seconds * (kv_splits > 1 ? 2 : 1);
  return time;
}

TimeModel kv_outer_time(const TimeInputs& in, const TileShape& t) {
  TimeModel time;
  if (in.rates.matmul_flops_per_second <= 0) return time;
  const TrafficShape& s = in.shape;
  // O is spilled between key tiles, so one head's key tiles cannot be shared among units.
  const double units = static_cast<double>(max(1, min(in.machine->units, s.sequences)));
  const WalkSums sums = walk_sums(s.rule, t.tile.q_rows, t.tile.kv_rows);
  const double pairs = static_cast<double>(s.sequences) * static_cast<double>(sums.tiles);
  const PairTimes pair = pair_times(in, t);
  const Traffic traffic = kv_outer_traffic(s, t.tile);
  // All that moves passes the way that keys take into the chip.
  double inward = 0;
  for (const LinkUse& use : in.placement->links) {
    if (use.tensor != TileTensor::k || in.machine->links[use.link].from != "cache") continue;
    inward = link_bytes_per_second(*in.machine, in.machine->links[use.link]);
  }
  const double link = std::max(pair.link, seconds(bytes(traffic) / std::max(1.0, pairs), inward));
  const double steady = std::max(overlapped({pair.matmul, pair.exp}, in.costs.overlap), link);
  time.matmul_seconds = pairs * pair.matmul / units;
  time.exp_seconds = pairs * pair.exp / units;
  time.tile_overhead_seconds =
      pairs * (pair.overhead + in.costs.query_tile_clocks / in.rates.clock_hz) / units;
  const double busy = pairs * steady / units + time.tile_overhead_seconds;
  const double heads = static_cast<double>(s.sequences);
  time.tail_seconds = tail_seconds(heads, units, busy, heads > 0 ? busy * units / heads : 0);
  const double memory = off_chip_seconds(in, Schedule::kv_outer, traffic, t.tile);
  time.memory_seconds = std::max(memory, pairs * link / units);
  time.total_seconds = std::max(busy + time.tail_seconds, memory) + in.costs.launch_seconds;
  return time;
}

TimeModel standard_time(const TimeInputs& in, const TileShape& t) {
  TimeModel time;
  if (in.rates.matmul_flops_per_second <= 0) return time;
  const TrafficShape& s = in.shape;
  const auto units = static_cast<double>(max(1, in.machine->units));
  const Index q_tiles = ceil_div(s.rule.q_len, t.tile.q_rows);
  const Index kv_tiles = ceil_div(s.rule.kv_len, t.tile.kv_rows);
  const double pairs = static_cast<double>(s.sequences * q_tiles * kv_tiles);
  const PairTimes pair = pair_times(in, t);
  time.matmul_seconds = pairs * pair.matmul / units;
  time.exp_seconds = pairs * pair.exp / units;
  time.tile_overhead_seconds = pairs * 2 * pair.overhead / units;
  const Traffic off_chip =
      off_chip_traffic(s, Schedule::standard, standard_traffic(s, t.tile, {}), t.tile, *in.machine);
  // Three steps, each bound by its arithmetic or its bytes.
  double moved[3] = {};
  for (const TensorTraffic& tensor : off_chip.tensors) {
    const auto read = static_cast<double>(tensor.bytes_read);
    const auto written = static_cast<double>(tensor.bytes_written);
    if (tensor.tensor == "q" || tensor.tensor == "k") moved[0] += read;
    if (tensor.tensor == "s") moved[0] += written;
    if (tensor.tensor == "s") moved[1] += read;
    if (tensor.tensor == "p") moved[1] += written;
    if (tensor.tensor == "p" || tensor.tensor == "v") moved[2] += read;
    if (tensor.tensor == "o" || tensor.tensor == "lse") moved[2] += written;
  }
  const double rate = in.machine->memory_bytes_per_second.value;
  const double dims = static_cast<double>(max(1, t.qk_dim + t.v_dim));
  const double first = time.matmul_seconds * static_cast<double>(t.qk_dim) / dims;
  const double last = time.matmul_seconds * static_cast<double>(t.v_dim) / dims;
  time.memory_seconds = seconds(moved[0] + moved[1] + moved[2], rate);
  time.total_seconds = std::max(first, seconds(moved[0], rate)) +
                       std::max(time.exp_seconds, seconds(moved[1], rate)) +
                       std::max(last, seconds(moved[2], rate)) + time.tile_overhead_seconds +
                       3 * in.costs.launch_seconds;
  return time;
}

}  // namespace tilewright
