// bench/cpu_forward.cpp: the CPU backend's forward speed, as a share of what this CPU can do.
//
//   bench_cpu_forward [--isa=NAME] [--workers=N] [Google Benchmark's own flags]
//
// Each row is timed beside the peak that bounds it: fused multiply-adds (or bf16 dot products) in
// registers, or, for few queries, reading memory. Time is wall clock; the rate and of_peak, its
// share, are of the time that threads ran, for few queries of wall clock: medians of all calls.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "peak.h"
#include "tilewright/tilewright.h"

namespace tilewright::bench {
namespace {

struct Shape {
  DType dtype = DType::f32;
  std::int64_t heads = 8;
  std::int64_t q_tokens = 4096;
  std::int64_t kv_tokens = 4096;
  std::int64_t dim = 128;
  bool causal = false;
  Schedule schedule = Schedule::q_outer;
  bool tokens_first = false;  ///< [batch, tokens, heads, dim]; else [batch, heads, tokens, dim]
};

struct Settings {
  std::string isa;
  int workers = static_cast<int>(this_cpu().units);
};

// Elements of a normal distribution in the given type; bf16 by truncation.
std::vector<std::byte> normal(std::int64_t count, DType dtype) {
  const std::size_t element = size_bytes(dtype);
  std::vector<std::byte> bytes(static_cast<std::size_t>(count) * element);
  std::minstd_rand generator(7);
  std::normal_distribution<float> distribution;
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    const float value = distribution(generator);
    const auto* from = reinterpret_cast<const std::byte*>(&value);
    std::memcpy(bytes.data() + i * element, from + sizeof value - element, element);
  }
  return bytes;
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

void forward(benchmark::State& state, const Shape& shape, const Settings& settings) {
  AttentionSpec spec;
  spec.dtype = shape.dtype;
  spec.heads = spec.kv_heads = shape.heads;
  spec.q_lengths.max_tokens = shape.q_tokens;
  spec.kv_lengths.max_tokens = shape.kv_tokens;
  spec.qk_dim = shape.dim;
  spec.mask.causal = shape.causal;
  const auto layout = shape.tokens_first ? Strides::bshd : Strides::bhsd;
  spec.q.strides = spec.o.strides = layout(shape.q_tokens, shape.heads, shape.dim);
  spec.k.strides = spec.v.strides = layout(shape.kv_tokens, shape.heads, shape.dim);
  PlanOptions options;
  options.isa = settings.isa;
  options.workers = settings.workers;
  options.schedule = shape.schedule;
  const Result<AttentionProblem> problem = AttentionProblem::create(spec);
  const Result<Plan> chosen =
      problem.ok() ? plan(*problem, this_cpu(), options) : Result<Plan>(problem.status());
  if (!chosen.ok()) return state.SkipWithError(chosen.status().message().c_str());

  const auto q = normal(shape.q_tokens * shape.heads * shape.dim, shape.dtype);
  const auto k = normal(shape.kv_tokens * shape.heads * shape.dim, shape.dtype);
  const auto v = normal(shape.kv_tokens * shape.heads * shape.dim, shape.dtype);
  std::vector<std::byte> o(q.size());
  std::vector<std::byte> scratch(workspace_bytes(*chosen) + 64);
  void* aligned = scratch.data();
  std::size_t room = scratch.size();
  AttentionTensors tensors;
  tensors.q = q.data();
  tensors.k = k.data();
  tensors.v = v.data();
  tensors.o = o.data();
  RunOptions run_options;
  run_options.workspace.data = std::align(64, workspace_bytes(*chosen), aligned, room);
  run_options.workspace.bytes = workspace_bytes(*chosen);

  const bool streams = shape.q_tokens <= 16;
  const std::string& isa = chosen->forward().isa;
  const auto peak_now = [&] {
    if (streams) return read_bytes_per_second(std::size_t{256} << 20, settings.workers);
    if (isa == "avx512_bf16") return bf16_dot_flops_per_second(settings.workers);
    return fma_flops_per_second(isa, settings.workers);
  };
  const double amount = streams ? static_cast<double>(k.size() + v.size()) : problem->flops();
  std::vector<double> rates;
  std::vector<double> shares;
  for (auto _ : state) {
    // The peak of this moment, for a machine that others use too.
    const double peak = peak_now();
    const double start = wall_seconds();
    const double cpu_start = cpu_seconds();
    const Status status = run(*chosen, tensors, run_options);
    const double cpu_taken = (cpu_seconds() - cpu_start) / settings.workers;
    const double taken = wall_seconds() - start;
    if (!status.ok()) return state.SkipWithError(status.message().c_str());
    state.SetIterationTime(taken);
    rates.push_back(amount / (streams ? taken : cpu_taken));
    if (peak > 0) shares.push_back(rates.back() / peak);
  }
  state.counters[streams ? "bytes_per_second" : "flop_per_second"] = median(rates);
  if (!shares.empty()) state.counters["of_peak"] = median(shares);
  const Tile tile = chosen->forward().tile;
  state.SetLabel(
      fmt::format("tile {}x{}, splits {}", tile.q_rows, tile.kv_rows, chosen->forward().kv_splits));
}

void register_shape(const Shape& shape, const Settings& settings) {
  const std::string label =
      fmt::format("{}/{}/heads:{}/q:{}/kv:{}/dim:{}{}{}", name(shape.schedule), name(shape.dtype),
                  shape.heads, shape.q_tokens, shape.kv_tokens, shape.dim,
                  shape.causal ? "/causal" : "", shape.tokens_first ? "/bshd" : "");
  benchmark::RegisterBenchmark(label.c_str(),
                               [=](benchmark::State& state) { forward(state, shape, settings); })
      ->UseManualTime()
      ->Unit(benchmark::kMillisecond);
}

}  // namespace
}  // namespace tilewright::bench

int main(int argc, char** argv) {
  using namespace tilewright;
  using namespace tilewright::bench;
  Settings settings;
  std::vector<char*> rest;
  for (int i = 0; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument.starts_with("--isa=")) {
      settings.isa = argument.substr(6);
    } else if (argument.starts_with("--workers=")) {
      settings.workers = std::stoi(argument.substr(10));
    } else {
      rest.push_back(argv[i]);
    }
  }
  int count = static_cast<int>(rest.size());
  benchmark::Initialize(&count, rest.data());

  const double clock = clock_hz();
  benchmark::AddCustomContext("clock", fmt::format("{:.2f} GHz, one core", clock * 1e-9));
  for (const std::string isa : {"avx512", "avx2"}) {
    const double flops = fma_flops_per_second(isa, 1);
    if (flops == 0) continue;
    benchmark::AddCustomContext(
        isa + " multiply-add peak",
        fmt::format("{:.1f} GFLOP/s, one core: {:.1f} FLOP a clock", flops * 1e-9, flops / clock));
  }
  if (const double flops = bf16_dot_flops_per_second(1); flops > 0) {
    benchmark::AddCustomContext(
        "bf16 dot product peak",
        fmt::format("{:.1f} GFLOP/s, one core: {:.1f} FLOP a clock", flops * 1e-9, flops / clock));
  }
  for (const DType dtype : {DType::f32, DType::bf16}) {
    for (const std::int64_t dim : {64, 128}) {
      for (const bool causal : {false, true}) {
        for (const std::int64_t tokens : {1024, 4096}) {
          register_shape({dtype, 8, tokens, tokens, dim, causal}, settings);
        }
      }
      for (const std::int64_t queries : {1, 4, 16}) {
        for (const bool tokens_first : {false, true}) {
          register_shape({dtype, 8, queries, 32768, dim, false, Schedule::q_outer, tokens_first},
                         settings);
        }
      }
    }
  }
  register_shape({DType::f32, 8, 4096, 4096, 128, false, Schedule::standard}, settings);
  register_shape({DType::f32, 1, 1024, 131072, 64}, settings);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
