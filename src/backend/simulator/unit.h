// src/backend/simulator/unit.h: one unit of a machine: its memories, its operands off chip, and the
// counted ways between them.
#pragma once

#include <deque>
#include <string_view>
#include <vector>

#include "backend/simulator/memory.h"
#include "plan/placement.h"
#include "tilewright/simulate.h"

namespace tilewright::simulator {

using schedule::Index;

/// Rows [begin, end) of one head of an operand off chip.
struct Rows {
  Index batch = 0;
  Index head = 0;
  Index begin = 0;
  Index end = 0;

  Index count() const { return end - begin; }
};

/// An operand off chip: [batch, tokens, heads, columns], or scratch of the same form. Without
/// numbers it counts what crosses all the same.
class OffChip {
 public:
  OffChip(std::string name, Index batch, Index tokens, Index heads, Index columns,
          Index element_bytes, bool has_numbers);

  /// Reads rows onto the chip, or columns [first, first + count) of them.
  Matrix read(const Rows& rows);
  Matrix read(const Rows& rows, Index first_column, Index columns);
  void write(const Rows& rows, const Matrix& from);
  void write(const Rows& rows, Index first_column, const Matrix& from);

  /// A tile written by one core and read by another: it leaves the chip and comes back.
  void pass_through(const Matrix& tile) { pass_through(tile, element_bytes_); }
  void pass_through(const Matrix& tile, Index element_bytes);

  /// Bytes that crossed, each way.
  TensorTraffic traffic() const { return {name_, bytes_read_, bytes_written_}; }
  std::vector<double>& values() { return values_; }
  Index columns() const { return columns_; }

 private:
  std::size_t offset(const Rows& rows, Index row, Index column) const;

  std::string name_;
  Index tokens_, heads_, columns_, element_bytes_;
  bool has_numbers_;
  Index bytes_read_ = 0;
  Index bytes_written_ = 0;
  std::vector<double> values_;
};

/// What a schedule runs on: the memories of one unit, and where each tile goes.
class Unit {
 public:
  Unit(const Machine& machine, const Placement& placement, const TileShape& shape);

  /// Puts a tile of q_rows x kv_rows (its actual, clipped sizes) into every store that holds it.
  std::vector<Reservation> hold(TileTensor tensor, Index q_rows, Index kv_rows);
  /// Row maxima and sums, beside the softmax.
  Reservation hold_row_state(Index q_rows);
  Reservation hold_bytes(TileTensor tensor, const std::string& what, Index bytes);

  const Placement& placement() const { return placement_; }
  std::vector<StorePeak> peaks() const;

 private:
  const Machine& machine_;
  const Placement& placement_;
  TileShape shape_;
  std::deque<Memory> memories_;  ///< as the machine's stores; a Memory does not move
};

}  // namespace tilewright::simulator
