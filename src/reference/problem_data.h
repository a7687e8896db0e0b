// src/reference/problem_data.h: the tensors of one test case, in buffers whose every other byte is
// poison.
//
// Poison is a pattern that reads as NaN in every floating type. What lies outside the sequences of
// a case (padding, tails, gaps between strides, guards around each tensor) is poisoned before a run
// and must be intact after it; outputs are poisoned in full, so a row left unwritten shows as NaN.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tilewright/attention.h"

namespace tilewright::reference {

/// A problem with its lengths and the seed of its values: all that is needed to repeat it.
struct Case {
  std::string name;
  AttentionSpec spec;
  std::vector<std::int32_t> q_lengths;   ///< empty when fixed
  std::vector<std::int32_t> kv_lengths;  ///< likewise
  std::uint64_t seed = 1;
};

/// What AttentionTensors has addresses of, in its order.
enum class TensorId : std::uint8_t {
  q,
  k,
  v,
  o,
  lse,
  q_lengths,
  kv_lengths,
  alibi_slopes,
  sinks,
  bias
};
constexpr std::size_t kTensorCount = 10;

/// The allocation behind one tensor.
struct Buffer {
  std::unique_ptr<std::byte[]> storage;
  std::byte* data = nullptr;  ///< 4096-byte aligned
  std::size_t bytes = 0;
  std::size_t origin_bytes = 0;   ///< from data to the tensor's first element
  std::vector<bool> used;         ///< bytes that belong to an element of some sequence
  std::vector<std::byte> before;  ///< inputs: what they held before the run

  bool present() const { return data != nullptr; }
  void* address() const { return present() ? data + origin_bytes : nullptr; }
};

/// Index of an element: the sequence and the token within it, so packed batches look like others.
/// bias: token is the query and dim the key.
struct ElementIndex {
  std::int64_t batch = 0;
  std::int64_t token = 0;
  std::int64_t head = 0;
  std::int64_t dim = 0;
};
using ElementValue = std::function<float(const ElementIndex&)>;

class ProblemData {
 public:
  /// Random normal values from the case's seed; the spec's own error if it has one.
  static Result<ProblemData> create(const Case& what);

  const AttentionProblem& problem() const { return problem_; }
  const Case& what() const { return what_; }
  /// Host addresses. Every one lies within its buffer.
  AttentionTensors tensors() const;
  const Buffer& buffer(TensorId id) const { return buffers_[static_cast<std::size_t>(id)]; }

  /// Sets every element of q, k, v, alibi_slopes, sinks or bias that lies in a sequence.
  void set(TensorId id, const ElementValue& value);
  /// Writes one pattern over every byte that lies outside the sequences: results must not change.
  void set_outside(std::uint16_t pattern);
  /// Outputs become poison and inputs are remembered: call it before every run.
  void prepare_run();
  /// What a run touched that it must not have: an input, or a byte outside the rows of o and lse.
  std::optional<std::string> violation() const;

 private:
  explicit ProblemData(AttentionProblem problem) : problem_(std::move(problem)) {}
  Buffer& at(TensorId id) { return buffers_[static_cast<std::size_t>(id)]; }
  void allocate_all();
  void fill_all();
  void for_each_element(TensorId id,
                        const std::function<void(const ElementIndex&, std::int64_t)>& visit) const;

  AttentionProblem problem_;
  Case what_;
  Buffer buffers_[kTensorCount];
};

constexpr std::uint16_t kPoison = 0x7fa5;

/// Fills memory with poison, for workspaces.
void poison(void* data, std::size_t bytes, std::uint16_t pattern = kPoison);

}  // namespace tilewright::reference
