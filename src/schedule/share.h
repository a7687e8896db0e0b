// src/schedule/share.h: things shared out as evenly as they come.
//
// Freestanding and constexpr, like mask_rule.h.
#pragma once

namespace tilewright::schedule {

/// Things [first, first + size).
struct Share {
  int first;
  int size;
};

/// The share that holds `thing` when `things` of them are dealt into `shares`, 1 to `things`. The
/// first shares hold one more where they do not come out even.
constexpr Share share_of(int thing, int things, int shares) {
  const int size = things / shares;
  const int larger = things % shares;
  const int in_larger = larger * size + larger;
  if (thing < in_larger) return {thing / (size + 1) * (size + 1), size + 1};
  return {in_larger + (thing - in_larger) / size * size, size};
}

}  // namespace tilewright::schedule
