// src/plan/print.cpp: plans as text and as JSON.
#include <fmt/format.h>

#include "tilewright/plan.h"

namespace tilewright {

std::string_view name(Schedule schedule) noexcept {
  switch (schedule) {
    case Schedule::q_outer:
      return "q_outer";
    case Schedule::kv_outer:
      return "kv_outer";
    case Schedule::standard:
      return "standard";
  }
  return "unknown";
}

std::string_view name(KernelFamily family) noexcept {
  switch (family) {
    case KernelFamily::cpu_forward:
      return "cpu_forward";
    case KernelFamily::hopper_forward:
      return "hopper_forward";
    case KernelFamily::modelled:
      return "modelled";
  }
  return "unknown";
}

std::string to_text(const Plan& plan) {
  const ForwardPlan& forward = plan.forward();
  return fmt::format("{} {} tile {}x{} on {}: {}", name(plan.family), name(forward.schedule),
                     forward.tile.q_rows, forward.tile.kv_rows, plan.machine_id, plan.reason);
}

std::string to_json(const Plan& plan) {
  const ForwardPlan& forward = plan.forward();
  return fmt::format(R"({{"family":"{}","schedule":"{}","q_rows":{},"kv_rows":{}}})",
                     name(plan.family), name(forward.schedule), forward.tile.q_rows,
                     forward.tile.kv_rows);
}

}  // namespace tilewright
