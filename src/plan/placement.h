// src/plan/placement.h: which tile lies in which store of a machine, and the ways between stores.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "plan/traffic.h"
#include "tilewright/machine.h"

namespace tilewright {

/// The tiles that schedules move: queries, keys, values, scores, probabilities, output.
enum class TileTensor : std::uint8_t { q = 0, k, v, s, p, o };

std::string_view name(TileTensor tensor) noexcept;

/// A tile, or a block of it at a time, in a store.
struct PlacedTile {
  TileTensor tensor = TileTensor::q;
  std::size_t store = 0;  ///< index in the machine's stores
  Index most_rows = 0;    ///< of a block; 0: the whole tile
  Index most_columns = 0;

  bool whole() const { return most_rows == 0; }
};

/// A tile's way over one link.
struct LinkUse {
  std::size_t link = 0;  ///< index in the machine's links
  TileTensor tensor = TileTensor::q;
  bool once = false;  ///< once a query tile; else once a pair of query and key tile
};

struct Placement {
  std::vector<PlacedTile> tiles;  ///< in the order of the machine's stores
  std::vector<LinkUse> links;
  HandOff hand_off;
  std::size_t softmax_store = 0;  ///< where rows are exponentiated: holds row maxima and sums

  /// invalid_argument names a store whose `holds` is not understood, or a tile that has no place.
  static Result<Placement> create(const Machine& machine);
};

/// Bytes of one thing in one store.
struct PlacedBytes {
  std::size_t store = 0;
  std::string_view what;  ///< "q tile", "row maxima and sums", ...
  Index bytes = 0;
};

/// Sizes that a tile set's bytes depend on.
struct TileShape {
  Tile tile;
  Index stages = 1;  ///< key and value tiles in flight
  Index qk_dim = 0;
  Index v_dim = 0;
  Index element_bytes = 4;
};

/// What each store holds for a tile: of one such store, where several serve a unit.
std::vector<PlacedBytes> placed_bytes(const Placement& placement, const Machine& machine,
                                      const TileShape& shape);

/// How the unfused schedule's softmax works with what the machine's stores hold.
StandardSoftmax standard_softmax(const Machine& machine, const Placement& placement,
                                 const TrafficShape& shape);

/// What one unit may use of a store; 0 if that is not known (and then not enforced).
Index capacity_bytes(const Machine& machine, const Store& store);

}  // namespace tilewright
