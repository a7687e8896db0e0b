// tests/conformance/variant.h: what a backend supplies to face the conformance suite.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tilewright/attention.h"
#include "tilewright/status.h"

namespace tilewright::conformance {

/// Host memory behind some of a call's addresses.
struct HostBuffer {
  void* data = nullptr;
  std::size_t bytes = 0;
  bool output = false;  ///< o or lse: the run's writes to it must arrive here, and nothing else
};

/// One call, on host memory. Every address of `tensors` that is not null lies in one buffer, so a
/// device backend copies buffers whole (outputs too, poison included), and moves the addresses.
struct Call {
  const AttentionProblem* problem = nullptr;
  AttentionTensors tensors;
  std::vector<HostBuffer> buffers;
};

struct RunSettings {
  std::int64_t workers = 0;  ///< 0: the variant's own
  bool batch_invariant = false;
};

/// A backend with what is forced on it: instruction set, tile, schedule, splits, executor.
class Variant {
 public:
  virtual ~Variant() = default;
  virtual std::string name() const = 0;
  /// The field by whose name this backend refuses the problem: run must then say unsupported and
  /// name it. Nothing: run must succeed.
  virtual std::optional<std::string> refuses(const AttentionSpec&) const { return std::nullopt; }
  /// Plans and runs with poisoned scratch; the plan as text, for failure messages.
  virtual Result<std::string> run(const Call& call, const RunSettings& settings) const = 0;
};

/// The variants that every case runs on. Each test program defines them, once, for its backend.
const std::vector<std::unique_ptr<Variant>>& variants();

/// The element type of cases that are about something else: one that the backend does not refuse.
/// Defined beside variants().
DType usual_dtype();

}  // namespace tilewright::conformance
