// src/backend/cuda/hopper_forward.cpp: compiles, fills in and launches the Hopper forward kernel.
#include "backend/cuda/hopper_forward.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>

#include "backend/cuda/attention_combine.h"
#include "backend/cuda/parameters.h"
#include "backend/cuda/tensor_map.h"
#include "plan/hopper_forward.h"
#include "schedule/mask_rule.h"

namespace tilewright::cuda {
namespace {

namespace device = tilewright::kernels;

// Tiles are numbered in 32 bits, and every block draws one number past the last.
constexpr std::int64_t kTileLimit = std::numeric_limits<std::int32_t>::max() - (1 << 16);

// K and V that stay in L2 together: half of Hopper's 50 MB or more.
constexpr std::int64_t kResidentKvBytes = std::int64_t{32} << 20;

// Query tiles of a head from which re-reads of K and V outweigh the first reads.
constexpr std::int64_t kManyQueryTiles = 8;

// The driver from which graphs hold launches that overlap.
constexpr int kCapturesOverlaps = 12030;

constexpr int kRegistersPerMultiprocessor = 65536;
constexpr int kRegisterGranule = 8;

Status not_supported(std::string message) {
  return {StatusCode::unsupported, std::move(message)};
}

// How many groups of KV heads are walked one after the other. A group has about one tile for each
// multiprocessor (two, where sequences are long: the longest come first, and short ones then even
// out the end), or fewer, so that its K and V stay in L2.
int head_groups(const Plan& plan) {
  const AttentionProblem& problem = plan.problem;
  const AttentionSpec& spec = problem.spec();
  const ForwardPlan& forward = plan.forward();
  const bool one_list = spec.q_lengths.kind == LengthKind::fixed;
  const std::int64_t batches = one_list ? std::max<std::int64_t>(1, spec.batch) : 1;
  const std::int64_t kv_heads = std::max<std::int64_t>(1, spec.kv_heads * batches);
  const std::int64_t q_tiles =
      std::max<std::int64_t>(1, schedule::ceil_div(problem.q_len(), hopper_tile_tokens(forward)));
  const std::int64_t tiles =
      kv_heads * q_tiles * forward.kv_splits * problem.group() / forward.packed_heads;
  const std::int64_t group_tiles = forward.workers * (q_tiles < kManyQueryTiles ? 1 : 2);
  const auto element = static_cast<std::int64_t>(size_bytes(spec.dtype));
  const std::int64_t kv_head_bytes =
      std::max<std::int64_t>(1, problem.kv_len() * (spec.qk_dim + spec.v_dim) * element);
  const std::int64_t resident = std::max<std::int64_t>(1, kResidentKvBytes / kv_head_bytes);
  const std::int64_t groups = std::max<std::int64_t>((tiles + group_tiles / 2) / group_tiles,
                                                     schedule::ceil_div(kv_heads, resident));
  return static_cast<int>(std::clamp<std::int64_t>(groups, 1, kv_heads));
}

Status check_plan(const Plan& plan) {
  Status status = check_hopper_forward(plan.problem);
  if (!status.ok()) return status;
  const std::int64_t tiles = hopper_tiles(plan.problem, plan.forward());
  if (tiles > kTileLimit) {
    return not_supported(fmt::format(
        "the plan has {} query tiles; accepted by hopper_forward: up to {}", tiles, kTileLimit));
  }
  return {};
}

Result<device::TensorMap> map_of(const DriverApi& driver, std::string_view operand,
                                 const OperandShape& shape, const void* address,
                                 const void* stand_in, int box_rows, int packed_heads = 0) {
  const bool empty = shape.batch == 0 || shape.rows == 0;
  const Result<TensorMap> map =
      encode_tensor_map(driver, operand, shape, empty ? stand_in : address,
                        {schedule::kPanelElements, box_rows, packed_heads});
  if (!map.ok()) return map.status();
  return std::bit_cast<device::TensorMap>(*map);
}

struct Kernels {
  LoadedKernel forward;
  LoadedKernel combine;  ///< when the plan splits
};

Result<Kernels> load_kernels(const Runtime& runtime, const Plan& plan, bool prepared_only) {
  Kernels kernels;
  const KernelSource source =
      hopper_forward_source(hopper_specialisation(plan.problem, plan.forward()));
  const Result<LoadedKernel> forward = runtime.kernels.get(source, prepared_only);
  if (!forward.ok()) return forward.status();
  kernels.forward = *forward;
  if (plan.forward().kv_splits > 1) {
    const Result<LoadedKernel> combine =
        runtime.kernels.get(attention_combine_source(), prepared_only);
    if (!combine.ok()) return combine.status();
    kernels.combine = *combine;
  }
  return kernels;
}

// overlaps: the kernel may begin before the one ahead of it in the stream has ended, and waits for
// that itself.
Status launch(const DriverApi& driver, std::string_view name, const LoadedKernel& kernel,
              unsigned blocks, StreamHandle stream, void* params, bool overlaps = false) {
  LaunchAttribute attribute;
  LaunchConfig config;
  config.grid[0] = blocks;
  config.block[0] = static_cast<unsigned>(kernel.threads);
  config.dynamic_shared_bytes = static_cast<unsigned>(kernel.dynamic_shared_bytes);
  config.stream = stream;
  config.attributes = &attribute;
  config.attribute_count = overlaps ? 1 : 0;
  void* arguments[] = {params};
  return check(
      driver, driver.launch_kernel(&config, kernel.function, arguments, nullptr),
      fmt::format("launching {} with {} blocks of {} threads and {} bytes of shared memory", name,
                  blocks, kernel.threads, kernel.dynamic_shared_bytes));
}

}  // namespace

KernelSource hopper_forward_source(const schedule::HopperForwardSpecialisation& specialisation) {
  KernelSource source;
  source.name = "hopper_forward";
  schedule::for_each_field(specialisation, [&](const char* field, int value) {
    source.name += fmt::format(" {}={}", field, value);
    source.generated_text += fmt::format("{}{}", source.generated_text.empty() ? "" : ", ", value);
  });
  source.generated_text += "\n";
  source.entry = "hopper_forward";
  source.file = "kernels/attention/hopper_forward.cu";
  source.generated_name = "hopper_forward_specialisation.inc";
  source.dynamic_shared_bytes = schedule::footprint(specialisation).total_bytes();
  source.threads = schedule::threads(specialisation);
  // One block a multiprocessor starts with as many as all its threads can have, up to what a
  // consumer takes; the roles then trade.
  source.planned_registers =
      std::min(kRegistersPerMultiprocessor / source.threads / kRegisterGranule * kRegisterGranule,
               schedule::consumer_register_limit(specialisation));
  // Each step of 16 along the head dim, and along the keys, is an instruction of its own.
  source.planned_matrix_instructions = (specialisation.qk_dim + specialisation.tile.kv_rows) / 16;
  return source;
}

Result<device::HopperForwardParams> hopper_forward_params(const DriverApi& driver, const Plan& plan,
                                                          const AttentionTensors& tensors,
                                                          void* workspace) {
  const AttentionProblem& problem = plan.problem;
  const AttentionSpec& spec = problem.spec();
  const ForwardPlan& forward = plan.forward();
  const bool q_packed = spec.q_lengths.kind == LengthKind::cumulative;
  const bool kv_packed = spec.kv_lengths.kind == LengthKind::cumulative;
  device::HopperForwardParams params{};
  params.pack = schedule::head_pack(static_cast<int>(forward.packed_heads));

  if (copy_engine_refusal(problem).empty()) {
    const auto kv_rows = static_cast<int>(forward.tile.kv_rows);
    const bool packs = schedule::packs_heads(hopper_specialisation(problem, forward));
    const auto q = map_of(driver, "q", q_shape(problem), tensors.q, workspace, params.pack.tokens,
                          packs ? params.pack.heads : 0);
    const auto k = map_of(driver, "k", k_shape(problem), tensors.k, workspace, kv_rows);
    const auto v = map_of(driver, "v", v_shape(problem), tensors.v, workspace, kv_rows);
    for (const auto* map : {&q, &k, &v}) {
      if (!map->ok()) return map->status();
    }
    params.q_map = *q;
    params.k_map = *k;
    params.v_map = *v;
  }
  params.q = strided(tensors.q, problem.q(), q_packed);
  params.k = strided(tensors.k, problem.k(), kv_packed);
  params.v = strided(tensors.v, problem.v(), kv_packed);
  params.o = strided(tensors.o, problem.o(), q_packed);
  params.lse = tensors.lse;
  const LseStrides lse = lse_strides(problem);
  params.lse_batch_stride = lse.batch;
  params.lse_head_stride = lse.head;
  params.sinks = head_scalars(spec.sinks, tensors.sinks, spec.heads);
  if (forward.kv_splits > 1) {  // Partial results, which the sink joins only once they are merged.
    params.o = partial_o(problem, workspace);
    params.o_split_stride = partial_o_split_stride(problem);
    params.lse = partial_lse(problem, forward.kv_splits, workspace);
    params.lse_split_stride = problem.lse_rows();
    params.sinks = {};
  }

  params.q_lengths = sequence_lengths(spec.q_lengths, tensors.q_lengths);
  params.kv_lengths = sequence_lengths(spec.kv_lengths, tensors.kv_lengths);
  params.alibi_slopes = head_scalars(spec.alibi, tensors.alibi_slopes, spec.heads);

  params.batch = static_cast<int>(spec.batch);
  params.heads = static_cast<int>(spec.heads);
  params.heads_per_kv_head = static_cast<int>(problem.group());
  params.qk_dim = static_cast<int>(spec.qk_dim);
  params.v_dim = static_cast<int>(spec.v_dim);
  params.scale = static_cast<float>(problem.scale());
  params.softcap = static_cast<float>(spec.softcap);
  params.splits = static_cast<int>(forward.kv_splits);
  params.window_left = spec.mask.window_left;
  params.window_right = spec.mask.causal ? 0 : spec.mask.window_right;
  params.bottom_right = spec.mask.diagonal == Diagonal::bottom_right;
  params.head_groups = head_groups(plan);
  params.control = static_cast<int*>(workspace);
  return params;
}

Status prepare_hopper_forward(const Runtime& runtime, const Plan& plan) {
  Status status = check_plan(plan);
  if (!status.ok()) return status;
  return load_kernels(runtime, plan, false).status();
}

Status run_hopper_forward(const Runtime& runtime, const Plan& plan, const AttentionTensors& tensors,
                          const RunOptions& options) {
  const DriverApi& driver = runtime.driver;
  const ForwardPlan& forward = plan.forward();
  Status status = check_plan(plan);
  if (!status.ok()) return status;
  const std::int64_t tiles = hopper_tiles(plan.problem, forward);
  if (tiles == 0) return {};
  if (options.workspace.data == nullptr) {
    return {StatusCode::invalid_argument,
            fmt::format("workspace.data is null; accepted: {} bytes of device memory, made ready "
                        "once by init_workspace()",
                        workspace_bytes(plan))};
  }
  const auto stream = static_cast<StreamHandle>(options.stream);
  CaptureStatus capture = CaptureStatus::none;
  status = check(driver, driver.stream_is_capturing(stream, &capture),
                 "asking whether the stream is capturing");
  if (!status.ok()) return status;
  int version = kCapturesOverlaps;
  if (capture != CaptureStatus::none) {
    status = check(driver, driver.driver_get_version(&version), "asking for the driver's version");
    if (!status.ok()) return status;
  }
  const Result<Kernels> kernels = load_kernels(runtime, plan, capture != CaptureStatus::none);
  if (!kernels.ok()) return kernels.status();
  Result<device::HopperForwardParams> params =
      hopper_forward_params(driver, plan, tensors, options.workspace.data);
  if (!params.ok()) return params.status();
  const auto blocks = static_cast<unsigned>(std::clamp<std::int64_t>(forward.workers, 1, tiles));
  status = launch(driver, "hopper_forward", kernels->forward, blocks, stream, &*params);
  if (!status.ok() || forward.kv_splits <= 1) return status;
  device::AttentionCombineParams combine =
      attention_combine_params(plan, tensors, options.workspace.data);
  return launch(driver, "attention_combine", kernels->combine, attention_combine_blocks(plan),
                stream, &combine, version >= kCapturesOverlaps);
}

}  // namespace tilewright::cuda
