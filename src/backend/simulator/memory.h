// src/backend/simulator/memory.h: on-chip memories that refuse to be over-filled, and what is in
// them.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace tilewright::simulator {

/// Thrown where a tile would over-fill a memory; simulate() turns it into a Status.
class CapacityExceeded : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// One on-chip memory. It knows how much is in it, and how much ever was.
class Memory {
 public:
  /// capacity_bytes 0: not known, not enforced.
  Memory(std::string name, std::int64_t capacity_bytes)
      : name_(std::move(name)), capacity_bytes_(capacity_bytes) {}
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  void take(const std::string& what, std::int64_t bytes);
  void give_back(std::int64_t bytes) { used_bytes_ -= bytes; }

  const std::string& name() const { return name_; }
  std::int64_t capacity_bytes() const { return capacity_bytes_; }
  std::int64_t used_bytes() const { return used_bytes_; }
  std::int64_t peak_bytes() const { return peak_bytes_; }

 private:
  std::string name_;
  std::int64_t capacity_bytes_;
  std::int64_t used_bytes_ = 0;
  std::int64_t peak_bytes_ = 0;
};

/// Bytes held in one memory for as long as this lives.
class Reservation {
 public:
  Reservation(Memory& memory, const std::string& what, std::int64_t bytes)
      : memory_(&memory), bytes_(bytes) {
    memory.take(what, bytes);
  }
  Reservation(Reservation&& other) noexcept : memory_(other.memory_), bytes_(other.bytes_) {
    other.memory_ = nullptr;
  }
  Reservation& operator=(Reservation&&) = delete;
  ~Reservation() {
    if (memory_ != nullptr) memory_->give_back(bytes_);
  }

 private:
  Memory* memory_;
  std::int64_t bytes_;
};

/// A matrix of numbers, or only the size of one; where it lies on chip is reserved apart.
struct Matrix {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  bool has_numbers = true;
  std::vector<double> values;

  Matrix(std::int64_t row_count, std::int64_t column_count, double fill = 0)
      : rows(row_count),
        columns(column_count),
        values(static_cast<std::size_t>(row_count * column_count), fill) {}

  /// For a run that counts bytes alone: no element may be touched.
  static Matrix size_only(std::int64_t row_count, std::int64_t column_count) {
    Matrix matrix(0, 0);
    matrix.rows = row_count;
    matrix.columns = column_count;
    matrix.has_numbers = false;
    return matrix;
  }

  double& at(std::int64_t row, std::int64_t column) {
    return values[static_cast<std::size_t>(row * columns + column)];
  }
  double at(std::int64_t row, std::int64_t column) const {
    return values[static_cast<std::size_t>(row * columns + column)];
  }
};

}  // namespace tilewright::simulator
