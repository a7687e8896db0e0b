// cli/run.cpp: `tilewright run`: attention on files: reads Q, K and V, writes O and LSE.
#include "tilewright/run.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>

#include "check.h"
#include "command.h"
#include "files/buffer.h"
#include "flags.h"
#include "operands.h"
#include "output.h"
#include "process_memory.h"
#include "progress.h"
#include "report_page.h"
#include "text.h"
#include "timed_run.h"

namespace tilewright::cli {
namespace {

using json = nlohmann::ordered_json;

struct RunFlags {
  InputPaths paths;
  std::string out, lse, layout = "bshd", out_dtype;
  bool packed = false;
  std::int64_t repeat = 1;
  std::shared_ptr<ScoreFlags> score;
  std::shared_ptr<PlanFlags> plan;
  std::shared_ptr<std::string> report;
  std::shared_ptr<bool> json;
};

// What a finished run has to tell.
struct Report {
  double seconds = 0;
  double flops = 0;
  std::int64_t output_bytes = 0;
  std::int64_t peak_bytes = 0;

  double gflop_per_second() const { return seconds > 0 ? flops / seconds / 1e9 : 0; }
};

void print_json(const RunFlags& flags, const Operands& operands, const Plan& plan,
                const Report& report) {
  const auto text = [](const json& value) {
    return value.dump(2, ' ', false, json::error_handler_t::replace);
  };
  const ForwardPlan& forward = plan.forward();
  json out = {
      {"out",
       {{"path", flags.out}, {"shape", operands.o_shape}, {"dtype", name(plan.problem.o_dtype())}}},
      {"lse", flags.lse.empty()
                  ? json(nullptr)
                  : json{{"path", flags.lse}, {"shape", operands.lse_shape}, {"dtype", "f32"}}},
      {"seconds", report.seconds},
      {"flops", report.flops},
      {"gflop_per_second", report.gflop_per_second()},
      {"peak_resident_bytes", report.peak_bytes},
      {"input_bytes", operands.input_bytes},
      {"output_bytes", report.output_bytes},
      {"traffic_bytes", plan.traffic.bytes()},
      {"schedule", name(forward.schedule)},
      {"tile", fmt::format("{}x{}", forward.tile.q_rows, forward.tile.kv_rows)},
      {"isa", forward.isa},
      {"notes", operands.notes},
      {"plan", json::parse(to_json(plan), nullptr, false)}};
  fmt::print("{}\n", text(out));
}

void print_text(const RunFlags& flags, const Operands& operands, const Plan& plan,
                const Report& report) {
  fmt::print("{:<8}{}  {} {}\n", "out", quote(flags.out), files::shape_text(operands.o_shape),
             name(plan.problem.o_dtype()));
  if (!flags.lse.empty()) {
    fmt::print("{:<8}{}  {} f32\n", "lse", quote(flags.lse), files::shape_text(operands.lse_shape));
  }
  fmt::print("{:<8}{}, {:.2f} GFLOP/s\n", "time", seconds_text(report.seconds),
             report.gflop_per_second());
  fmt::print("{:<8}{} at the peak: inputs {}, outputs {}, all else {}\n", "memory",
             bytes_text(static_cast<double>(report.peak_bytes)),
             bytes_text(static_cast<double>(operands.input_bytes)),
             bytes_text(static_cast<double>(report.output_bytes)),
             bytes_text(static_cast<double>(std::max<std::int64_t>(
                 0, report.peak_bytes - operands.input_bytes - report.output_bytes))));
  fmt::print("\n{}\n", to_text(plan));
}

// O and LSE in memory, with defined values where nothing will be written: rows past a sequence's
// length see no key, so O = 0 and LSE = -inf.
struct ResultBuffers {
  std::shared_ptr<std::byte> o, lse;
  std::int64_t bytes = 0;

  static Result<ResultBuffers> create(std::int64_t o_bytes, std::int64_t lse_rows) {
    const std::int64_t lse_bytes = lse_rows * static_cast<std::int64_t>(sizeof(float));
    const auto o = files::zeroed_buffer(static_cast<std::size_t>(o_bytes));
    if (!o.ok()) return o.status();
    const auto lse = files::zeroed_buffer(static_cast<std::size_t>(lse_bytes));
    if (!lse.ok()) return lse.status();
    const ResultBuffers buffers{*o, *lse, o_bytes + lse_bytes};
    std::fill_n(buffers.lse_data(), lse_rows, -std::numeric_limits<float>::infinity());
    return buffers;
  }
  float* lse_data() const { return reinterpret_cast<float*>(lse.get()); }
};

bool same_file(const std::string& one, const std::string& other) {
  std::error_code error;
  return one == other || (std::filesystem::equivalent(one, other, error) &&
                          std::filesystem::is_regular_file(one, error));
}

// O may replace an input, as when a script works in place; LSE and the report replace nothing.
Status check_output_paths(const RunFlags& flags) {
  struct Named {
    std::string_view flag;
    const std::string& path;
  };
  const InputPaths& in = flags.paths;
  const Named inputs[] = {{"--input", in.input},
                          {"--q", in.q},
                          {"--k", in.k},
                          {"--v", in.v},
                          {"--q-lengths", in.q_lengths},
                          {"--kv-lengths", in.kv_lengths},
                          {"--alibi", in.alibi},
                          {"--sink", in.sinks},
                          {"--bias", in.bias}};
  const Named outputs[] = {{"--lse", flags.lse}, {"--report", *flags.report}};
  for (const Named& output : outputs) {
    if (output.path.empty()) continue;
    std::string_view taken;
    for (const Named& input : inputs) {
      if (!input.path.empty() && same_file(output.path, input.path)) taken = input.flag;
    }
    if (output.flag == "--report" && same_file(output.path, flags.out)) taken = "--out";
    if (output.flag == "--report" && same_file(output.path, flags.lse)) taken = "--lse";
    if (!taken.empty()) {
      return {StatusCode::invalid_argument,
              fmt::format("{} is {}, the file of {}; accepted: another file", output.flag,
                          quote(output.path), taken)};
    }
  }
  return {};
}

Status run_files(const RunFlags& flags) {
  Status paths = check_output_paths(flags);
  if (!paths.ok()) return paths;
  const Layout layout = flags.layout == "bhsd" ? Layout::bhsd : Layout::bshd;
  Result<std::unique_ptr<Operands>> read = read_operands(flags.paths, layout, flags.packed);
  if (!read.ok()) return read.status();
  Operands& operands = **read;
  flags.score->apply(operands.spec);
  if (!flags.out_dtype.empty()) operands.spec.o_dtype = parse_dtype(flags.out_dtype);
  const Result<Plan> plan = make_plan(operands.spec, *flags.plan);
  if (!plan.ok()) return plan.status();
  Status status = check_runnable(*plan);
  if (!status.ok()) return status;

  // Files are opened before the work, so that a path that cannot be written costs none.
  const DType o_dtype = plan->problem.o_dtype();
  Result<Outputs> outputs = Outputs::create(flags.out, flags.lse, {"o", o_dtype, operands.o_shape},
                                            {"lse", DType::f32, operands.lse_shape});
  if (!outputs.ok()) return outputs.status();
  Result<ReportPage> page = ReportPage::create(*flags.report);
  if (!page.ok()) return page.status();
  const Result<ResultBuffers> buffers =
      ResultBuffers::create(files::count_elements(operands.o_shape).value_or(0) *
                                static_cast<std::int64_t>(size_bytes(o_dtype)),
                            plan->problem.lse_rows());
  if (!buffers.ok()) return buffers.status();
  AttentionTensors tensors = operands.tensors;
  tensors.o = buffers->o.get();
  tensors.lse = buffers->lse_data();

  Result<std::vector<double>> seconds = std::vector<double>();
  {
    Progress progress("attention");
    seconds = timed_runs(*plan, tensors, flags.repeat,
                         [&](double fraction) { progress.update(fraction); });
  }
  if (!seconds.ok()) return seconds.status();
  status = outputs->write(tensors.o, tensors.lse);
  if (!status.ok()) return status;
  const Report report{median(*seconds), flops_of(plan->problem, operands), buffers->bytes,
                      peak_resident_bytes()};
  for (const std::string& note : operands.notes) fmt::print(stderr, "note: {}\n", note);
  if (page->wanted()) {
    const Result<Machine> machine = flags.plan->machine();
    if (!machine.ok()) return machine.status();
    status = page->write(*machine, {{*plan, report.seconds, report.peak_bytes}},
                         first_head_scores(plan->problem, tensors));
    if (!status.ok()) return status;
  }
  if (*flags.json) {
    print_json(flags, operands, *plan, report);
  } else {
    print_text(flags, operands, *plan, report);
  }
  return {};
}

constexpr const char* kFooter =
    R"(Arrays are [tokens, dim] (one head), [tokens, heads, dim] or [batch, tokens, heads, dim];
with --layout bhsd, heads come before tokens. Types: f32, bf16, f16; f64 is rounded to f32.
LSE is f32, [batch, heads, tokens]. Rows past a sequence's length become O = 0, LSE = -inf.
A file ending in .safetensors is read for the tensor of the flag's name (q, k, v, bias, alibi,
sink, q_lengths, kv_lengths), and written with tensors o and lse. bf16 in .npy is '<V2'.

Examples:
  tilewright run --q q.npy --k k.npy --v v.npy --out o.npy --lse lse.npy
  tilewright run --input qkv.safetensors --out o.safetensors --causal bottom-right
  tilewright run --q q.npy --k k.npy --v v.npy --out o.npy --packed --q-lengths offsets.npy
  tilewright run --q q.npy --k k.npy --v v.npy --out o.npy --window 255,0 --tile 64x128 --json)";

}  // namespace

Command add_run(CLI::App& app) {
  CLI::App* run_app =
      app.add_subcommand("run", "Attention on files: read Q, K and V, write O and LSE");
  run_app->footer(kFooter);
  auto flags = std::make_shared<RunFlags>();
  InputPaths& paths = flags->paths;
  const auto file = [&](const char* flag, std::string& value, const char* help) {
    return run_app->add_option(flag, value, help)->type_name("FILE");
  };
  file("--q", paths.q, "Queries");
  file("--k", paths.k, "Keys");
  file("--v", paths.v, "Values");
  file("--input", paths.input, "A .safetensors file with tensors q, k and v");
  file("--out", flags->out, "Where O goes: .npy or .safetensors")->required();
  file("--lse", flags->lse, "Where the log-sum-exp of each row goes");
  run_app->add_option("--layout", flags->layout, "Order of the axes in files")
      ->check(one_of({"bshd", "bhsd"}))
      ->capture_default_str();
  run_app->add_flag("--packed", flags->packed,
                    "Sequences lie one behind another; --q-lengths and --kv-lengths (default: the "
                    "same) hold batch + 1 offsets");
  file("--q-lengths", paths.q_lengths, "Query tokens of each sequence, [batch] integers");
  file("--kv-lengths", paths.kv_lengths, "Key tokens of each sequence, [batch] integers");
  file("--alibi", paths.alibi, "ALiBi slopes, [heads] or [batch, heads]");
  file("--sink", paths.sinks, "Attention sinks, [heads] or [batch, heads] natural-log logits");
  file("--bias", paths.bias,
       "Added to scores, or boolean (false masks); [batch, heads, q, kv], 1 broadcasts");
  run_app->add_option("--out-dtype", flags->out_dtype, "Element type of O (default: that of q)")
      ->check(one_of(dtype_words()));
  run_app->add_option("--repeat", flags->repeat, "Compute so many times, report the median time")
      ->check(integer(1, 1000000))
      ->capture_default_str();
  flags->score = add_score_flags(*run_app);
  flags->plan = add_plan_flags(*run_app);
  flags->report = add_report_flag(*run_app);
  flags->json = add_json_flag(*run_app);
  return {run_app, [flags] { return run_files(*flags); }, flags->json};
}

}  // namespace tilewright::cli
