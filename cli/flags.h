// cli/flags.h: flags that several subcommands share: the shape of a problem, its scores, its plan.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "tilewright/attention.h"
#include "tilewright/machine.h"
#include "tilewright/plan.h"
#include "tilewright/status.h"

namespace CLI {
class App;
}

namespace tilewright::cli {

/// Mask, scale and softcap: what becomes of the scores.
struct ScoreFlags {
  std::string causal, window, scale, softcap;

  void apply(AttentionSpec& spec) const;
};
std::shared_ptr<ScoreFlags> add_score_flags(CLI::App& app);

/// A problem given by its sizes alone.
struct ShapeFlags {
  std::int64_t batch = 1, heads = 8, kv_heads = 0, q_len = 4096, kv_len = 0, dim = 128, v_dim = 0;
  std::string dtype = "f32", out_dtype;

  AttentionSpec spec() const;
};
std::shared_ptr<ShapeFlags> add_shape_flags(CLI::App& app, const ShapeFlags& defaults = {});

/// "auto" or "cpu": this machine; else a profile's id, or a file that ends in .toml.
Result<Machine> find_machine(const std::string& device);

/// What the caller insists on about the plan, and the device.
struct PlanFlags {
  std::string device = "auto", tile, schedule, isa;
  std::int64_t threads = 0;

  PlanOptions options() const;
  Result<Machine> machine() const;
};
/// Which devices --device takes: those that can run, or also profiles of others, to plan for.
enum class Devices : std::uint8_t { here, profiles };
std::shared_ptr<PlanFlags> add_plan_flags(CLI::App& app, Devices devices = Devices::here);

/// Problem and plan for a spec on the device.
Result<Plan> make_plan(const AttentionSpec& spec, const PlanFlags& flags);

/// ok when a backend here runs the plan; else a refusal that names the schedule.
Status check_runnable(const Plan& plan);

}  // namespace tilewright::cli
