// src/reference/random.h: a small random generator whose numbers are the same on every platform.
#pragma once

#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <numbers>

namespace tilewright::reference {

/// SplitMix64 (Steele, Lea and Flood 2014). std's engines are portable, its distributions are not.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t bits() {
    state_ += 0x9e3779b97f4a7c15u;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  /// In [low, high].
  std::int64_t integer(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(bits() % static_cast<std::uint64_t>(high - low + 1));
  }
  /// In (0, 1].
  double uniform() { return static_cast<double>((bits() >> 11) + 1) * 0x1p-53; }
  bool chance(double probability) { return uniform() <= probability; }
  template <typename T>
  T choose(std::initializer_list<T> options) {
    return options.begin()[integer(0, static_cast<std::int64_t>(options.size()) - 1)];
  }
  /// Standard normal (Box and Muller 1958).
  double normal() {
    const double radius = std::sqrt(-2 * std::log(uniform()));
    return radius * std::cos(2 * std::numbers::pi * uniform());
  }

 private:
  std::uint64_t state_;
};

}  // namespace tilewright::reference
