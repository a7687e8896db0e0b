// src/backend/simulator/unit.cpp: memories, operands off chip, and counted transfers.
#include "backend/simulator/unit.h"

namespace tilewright::simulator {

OffChip::OffChip(std::string name, Index batch, Index tokens, Index heads, Index columns,
                 Index element_bytes, bool has_numbers)
    : name_(std::move(name)),
      tokens_(tokens),
      heads_(heads),
      columns_(columns),
      element_bytes_(element_bytes),
      has_numbers_(has_numbers),
      values_(has_numbers ? static_cast<std::size_t>(batch * tokens * heads * columns) : 0) {}

std::size_t OffChip::offset(const Rows& rows, Index row, Index column) const {
  return static_cast<std::size_t>(
      ((rows.batch * tokens_ + rows.begin + row) * heads_ + rows.head) * columns_ + column);
}

Matrix OffChip::read(const Rows& rows) {
  return read(rows, 0, columns_);
}

Matrix OffChip::read(const Rows& rows, Index first_column, Index columns) {
  bytes_read_ += rows.count() * columns * element_bytes_;
  if (!has_numbers_) return Matrix::size_only(rows.count(), columns);
  Matrix matrix(rows.count(), columns);
  for (Index row = 0; row < rows.count(); ++row) {
    for (Index column = 0; column < columns; ++column) {
      matrix.at(row, column) = values_[offset(rows, row, first_column + column)];
    }
  }
  return matrix;
}

void OffChip::write(const Rows& rows, const Matrix& from) {
  write(rows, 0, from);
}

void OffChip::write(const Rows& rows, Index first_column, const Matrix& from) {
  bytes_written_ += rows.count() * from.columns * element_bytes_;
  if (!has_numbers_) return;
  for (Index row = 0; row < rows.count(); ++row) {
    for (Index column = 0; column < from.columns; ++column) {
      values_[offset(rows, row, first_column + column)] = from.at(row, column);
    }
  }
}

void OffChip::pass_through(const Matrix& tile, Index element_bytes) {
  bytes_written_ += tile.rows * tile.columns * element_bytes;
  bytes_read_ += tile.rows * tile.columns * element_bytes;
}

Unit::Unit(const Machine& machine, const Placement& placement, const TileShape& shape)
    : machine_(machine), placement_(placement), shape_(shape) {
  for (const Store& store : machine.stores) {
    memories_.emplace_back(store.name, capacity_bytes(machine, store));
  }
}

std::vector<Reservation> Unit::hold(TileTensor tensor, Index q_rows, Index kv_rows) {
  TileShape actual = shape_;
  actual.tile = {q_rows, kv_rows};
  std::vector<Reservation> held;
  for (const PlacedTile& tile : placement_.tiles) {
    if (tile.tensor != tensor) continue;
    Placement alone;
    alone.tiles = {tile};
    alone.softmax_store = tile.store;
    // The first entry is the tile's; the second, row maxima and sums, is held apart.
    const PlacedBytes bytes = placed_bytes(alone, machine_, actual).front();
    held.emplace_back(memories_[tile.store], std::string(bytes.what), bytes.bytes);
  }
  return held;
}

Reservation Unit::hold_row_state(Index q_rows) {
  const Store& store = machine_.stores[placement_.softmax_store];
  return {memories_[placement_.softmax_store], "row maxima and sums",
          schedule::ceil_div(q_rows, store.count_per_unit) * 8};
}

Reservation Unit::hold_bytes(TileTensor tensor, const std::string& what, Index bytes) {
  std::size_t store = placement_.softmax_store;
  for (const PlacedTile& tile : placement_.tiles) {
    if (tile.tensor == tensor) store = tile.store;
  }
  return {memories_[store], what, bytes};
}

std::vector<StorePeak> Unit::peaks() const {
  std::vector<StorePeak> peaks;
  for (const Memory& memory : memories_) {
    if (memory.peak_bytes() == 0) continue;
    peaks.push_back({memory.name(), memory.peak_bytes(), memory.capacity_bytes()});
  }
  return peaks;
}

}  // namespace tilewright::simulator
