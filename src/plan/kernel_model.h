// src/plan/kernel_model.h: what the planner asks of a kernel family: its tiles, their bytes, their
// time.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "plan/placement.h"
#include "tilewright/plan.h"

namespace tilewright {

/// One way to run a problem, before it has become a plan.
struct Choice {
  Schedule schedule = Schedule::q_outer;
  Tile tile;
  Index stages = 1;
  Index kv_splits = 1;
  Index packed_heads = 1;

  bool operator==(const Choice&) const = default;
};

class KernelModel {
 public:
  KernelModel(const AttentionProblem& problem, const Machine& machine)
      : problem_(problem), machine_(machine), shape_(traffic_shape(problem)) {}
  virtual ~KernelModel() = default;

  virtual KernelFamily family() const = 0;
  /// Calls visit for every choice worth costing; visit says whether it fits.
  virtual void candidates(Schedule schedule,
                          const std::function<bool(const Choice&)>& visit) const = 0;
  /// The choice with this tile that needs the least of every store.
  virtual Choice least(Schedule schedule, const Tile& tile) const = 0;
  /// Whether a kernel of the family has this tile, and which tiles they have.
  virtual bool legal(const Choice& choice) const = 0;
  virtual std::string legal_tiles() const = 0;
  virtual std::vector<PlacedBytes> footprint(const Choice& choice) const = 0;
  virtual TimeModel time(const Choice& choice) const = 0;
  virtual Traffic traffic(const Choice& choice) const = 0;
  virtual Index workers(const Choice& choice) const = 0;
  virtual Index workspace_bytes(const Choice&, Index /*workers*/) const { return 0; }
  virtual std::string isa() const { return {}; }
  /// What choices are ranked by: modelled seconds, shifted where measurements know better.
  virtual double rank_seconds(const Choice& choice) const { return time(choice).total_seconds; }

  const AttentionProblem& problem() const { return problem_; }
  const Machine& machine() const { return machine_; }
  const TrafficShape& shape() const { return shape_; }
  TrafficShape shape(const Choice& choice) const {
    TrafficShape shape = shape_;
    shape.packed_heads = choice.packed_heads;
    return shape;
  }

 private:
  const AttentionProblem& problem_;
  const Machine& machine_;
  TrafficShape shape_;
};

/// The model for a machine: of the family that runs there, else of the machine's profile alone.
/// invalid_argument or unsupported says what in the problem, machine or options has none.
Result<std::unique_ptr<KernelModel>> make_kernel_model(const AttentionProblem& problem,
                                                       const Machine& machine,
                                                       const PlanOptions& options);

/// The families, each in a file of its own.
Result<std::unique_ptr<KernelModel>> make_cpu_model(const AttentionProblem& problem,
                                                    const Machine& machine,
                                                    const PlanOptions& options);
Result<std::unique_ptr<KernelModel>> make_hopper_model(const AttentionProblem& problem,
                                                       const Machine& machine);
Result<std::unique_ptr<KernelModel>> make_profile_model(const AttentionProblem& problem,
                                                        const Machine& machine);

}  // namespace tilewright
