// bench/planner_quality.cpp: the planner's tile against the best of a search, and its foreseen time
// against the measured one, on this CPU.
//
//   bench_planner_quality [--most-tokens N] [--tokens N] [--dim D] [--every FILE]
//
// One head on one thread, in processor time. Every tile is tried in rounds that visit all in turn,
// so that other work on the machine disturbs all alike; the fastest few then meet the planner's
// tile in more rounds, and their ratios are medians of those. Prints CSV; --every also writes
// all tiles' times.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tilewright/tilewright.h"

namespace {

using namespace tilewright;

constexpr std::int64_t kDims[] = {64, 96, 128, 192, 256};
constexpr std::int64_t kQueryRows[] = {24, 48, 96, 144, 192, 288, 384, 576, 768};
constexpr std::int64_t kKeyRows[] = {32, 64, 128, 192, 256, 384, 512};
/// From these lengths on, where a call takes long: every second size.
constexpr std::int64_t kLongTokens = 4096;
constexpr std::size_t kFinalists = 3;

struct Settings {
  std::int64_t least_tokens = 512;
  std::int64_t most_tokens = 16384;
  std::int64_t dim = 0;  ///< 0: all
  std::FILE* every = nullptr;
};

struct Case {
  std::int64_t tokens;
  std::int64_t dim;
  DType dtype;
  bool causal;
};

struct Timed {
  Plan plan;
  std::vector<double> seconds;

  double least() const { return *std::min_element(seconds.begin(), seconds.end()); }
};

double processor_seconds() {
  timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// Operands whose bits are small numbers in every type.
std::vector<std::uint16_t> operand(std::int64_t bytes, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<std::uint16_t> words(static_cast<std::size_t>(bytes / 2));
  for (auto& word : words) word = static_cast<std::uint16_t>(0x3c00 + (random() & 0x80ff));
  return words;
}

/// The operands of a case, and scratch as an engine lends it, so that no page is taken from the
/// system while timed.
class Runner {
 public:
  Runner(const Case& c, std::size_t scratch_bytes) : scratch_(scratch_bytes + 64) {
    const std::int64_t bytes = c.tokens * c.dim * static_cast<std::int64_t>(size_bytes(c.dtype));
    for (std::size_t i = 0; i < 4; ++i) {
      operands_[i] = operand(bytes, static_cast<std::uint32_t>(i));
    }
    tensors_.q = operands_[0].data();
    tensors_.k = operands_[1].data();
    tensors_.v = operands_[2].data();
    tensors_.o = operands_[3].data();
    void* aligned = scratch_.data();
    std::size_t space = scratch_.size();
    options_.workspace = {std::align(64, scratch_bytes, aligned, space), scratch_bytes};
  }

  void time(Timed& timed) const {
    const double start = processor_seconds();
    const Status status = run(timed.plan, tensors_, options_);
    timed.seconds.push_back(processor_seconds() - start);
    if (status.ok()) return;
    std::fprintf(stderr, "%s\n", status.message().c_str());
    std::exit(1);
  }

 private:
  std::vector<std::uint16_t> operands_[4];
  std::vector<std::byte> scratch_;
  AttentionTensors tensors_;
  RunOptions options_;
};

/// The planner's own plan, then one for every tile of the search.
std::vector<Timed> plans(const Case& c, const Machine& machine) {
  AttentionSpec spec;
  spec.q_lengths.max_tokens = spec.kv_lengths.max_tokens = c.tokens;
  spec.qk_dim = c.dim;
  spec.dtype = c.dtype;
  spec.mask.causal = c.causal;
  const AttentionProblem problem = AttentionProblem::create(spec).value();
  PlanOptions options;
  options.workers = 1;
  options.schedule = Schedule::q_outer;
  std::vector<Timed> all;
  all.push_back({plan(problem, machine, options).value(), {}});
  const std::size_t step = c.tokens >= kLongTokens ? 2 : 1;
  for (std::size_t q = 0; q < std::size(kQueryRows); q += step) {
    for (std::size_t kv = 0; kv < std::size(kKeyRows); kv += step) {
      options.tile = Tile{kQueryRows[q], kKeyRows[kv]};
      if (kQueryRows[q] > c.tokens) continue;
      Result<Plan> made = plan(problem, machine, options);
      if (made.ok()) all.push_back({*std::move(made), {}});
    }
  }
  return all;
}

std::string text(const Tile& tile) {
  return std::to_string(tile.q_rows) + "x" + std::to_string(tile.kv_rows);
}

void compare(const Case& c, const Machine& machine, std::FILE* every) {
  std::vector<Timed> all = plans(c, machine);
  std::size_t scratch_bytes = 64;
  for (const Timed& t : all) scratch_bytes = std::max(scratch_bytes, workspace_bytes(t.plan));
  const Runner runner(c, scratch_bytes);
  // Rounds until a tile has had about 50 ms, one at least.
  runner.time(all.front());
  const int rounds = std::clamp(static_cast<int>(0.05 / all.front().seconds.front()), 1, 7);
  all.front().seconds.clear();
  for (int round = 0; round < rounds; ++round) {
    for (Timed& t : all) runner.time(t);
  }
  const std::string type(name(c.dtype));
  for (const Timed& t : all) {
    if (every == nullptr) break;
    std::fprintf(every, "%s,%lld,%lld,%d,%s,%.7f,%.7f\n", type.c_str(),
                 static_cast<long long>(c.dim), static_cast<long long>(c.tokens), c.causal ? 1 : 0,
                 text(t.plan.forward().tile).c_str(), t.least(), t.plan.time.total_seconds);
  }
  const std::size_t tiles = all.size();
  const auto faster = [](const Timed& a, const Timed& b) { return a.least() < b.least(); };
  std::sort(all.begin() + 1, all.end(), faster);
  all.erase(all.begin() + 1 + static_cast<std::ptrdiff_t>(std::min(kFinalists, tiles - 1)),
            all.end());
  for (Timed& t : all) t.seconds.clear();
  const int final_rounds = c.tokens > kLongTokens ? 3 : 7;
  for (int round = 0; round < final_rounds; ++round) {
    for (Timed& t : all) runner.time(t);
  }
  const Timed& chosen = all.front();
  const Timed* best = &chosen;
  double most = 1;
  for (const Timed& t : all) {
    std::vector<double> ratios;
    for (std::size_t i = 0; i < t.seconds.size(); ++i) {
      ratios.push_back(chosen.seconds[i] / t.seconds[i]);
    }
    if (median(ratios) <= most) continue;
    most = median(ratios);
    best = &t;
  }
  const double seconds = median(chosen.seconds);
  std::printf("%s,%lld,%lld,%d,%s,%s,%zu,%.4f,%.6f,%.6f,%.3f\n", type.c_str(),
              static_cast<long long>(c.dim), static_cast<long long>(c.tokens), c.causal ? 1 : 0,
              text(chosen.plan.forward().tile).c_str(), text(best->plan.forward().tile).c_str(),
              tiles, most, seconds, chosen.plan.time.total_seconds,
              chosen.plan.time.total_seconds / seconds);
  std::fflush(stdout);
}

bool read_settings(int argc, char** argv, Settings& settings) {
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string flag = argv[i];
    if (flag == "--most-tokens") {
      settings.most_tokens = std::atoll(argv[i + 1]);
    } else if (flag == "--tokens") {
      settings.least_tokens = settings.most_tokens = std::atoll(argv[i + 1]);
    } else if (flag == "--dim") {
      settings.dim = std::atoll(argv[i + 1]);
    } else if (flag == "--every") {
      settings.every = std::fopen(argv[i + 1], "a");
      if (settings.every == nullptr) return false;
    } else {
      return false;
    }
  }
  return argc % 2 == 1;
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  if (!read_settings(argc, argv, settings)) {
    std::fprintf(stderr, "usage: %s [--most-tokens N] [--tokens N] [--dim D] [--every FILE]\n",
                 argv[0]);
    return 2;
  }
  // This machine with one core: what the planner would foresee for the one thread timed.
  Machine machine = this_cpu();
  const auto cores = static_cast<double>(machine.units);
  machine.f32_flops_per_second.value /= cores;
  machine.bf16_flops_per_second.value /= cores;
  machine.units = 1;
  std::printf(
      "dtype,dim,tokens,causal,chosen,best,tiles,chosen_over_best,measured_seconds,"
      "foreseen_seconds,foreseen_over_measured\n");
  for (std::int64_t tokens = settings.least_tokens; tokens <= settings.most_tokens; tokens *= 2) {
    for (const std::int64_t dim : kDims) {
      if (settings.dim != 0 && settings.dim != dim) continue;
      for (const DType dtype : {DType::f32, DType::bf16}) {
        for (const bool causal : {false, true}) {
          compare({tokens, dim, dtype, causal}, machine, settings.every);
        }
      }
    }
  }
  if (settings.every != nullptr) std::fclose(settings.every);
}
