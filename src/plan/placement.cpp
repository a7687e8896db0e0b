// src/plan/placement.cpp: reads where stores hold tiles, and finds the ways between them.
#include "plan/placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

namespace tilewright {
namespace {

constexpr TileTensor kTensors[] = {TileTensor::q, TileTensor::k, TileTensor::v,
                                   TileTensor::s, TileTensor::p, TileTensor::o};

/// "s" or "s[128x64]".
std::optional<PlacedTile> parse_word(std::string_view word, std::size_t store) {
  PlacedTile tile;
  tile.store = store;
  const std::size_t bracket = word.find('[');
  const auto found = std::find_if(std::begin(kTensors), std::end(kTensors),
                                  [&](TileTensor t) { return name(t) == word.substr(0, bracket); });
  if (found == std::end(kTensors)) return std::nullopt;
  tile.tensor = *found;
  if (bracket == std::string_view::npos) return tile;
  const char* end = word.data() + word.size();
  const auto rows = std::from_chars(word.data() + bracket + 1, end, tile.most_rows);
  if (rows.ec != std::errc() || rows.ptr == end || *rows.ptr != 'x') return std::nullopt;
  const auto columns = std::from_chars(rows.ptr + 1, end, tile.most_columns);
  if (columns.ec != std::errc() || columns.ptr + 1 != end || *columns.ptr != ']') {
    return std::nullopt;
  }
  if (tile.most_rows < 1 || tile.most_columns < 1) return std::nullopt;
  return tile;
}

Status parse_holds(const Machine& machine, std::vector<PlacedTile>& tiles) {
  for (std::size_t index = 0; index < machine.stores.size(); ++index) {
    std::string_view holds = machine.stores[index].holds;
    while (!holds.empty()) {
      const std::size_t space = holds.find(' ');
      const std::string_view word = holds.substr(0, space);
      holds.remove_prefix(space == std::string_view::npos ? holds.size() : space + 1);
      if (word.empty()) continue;
      const std::optional<PlacedTile> tile = parse_word(word, index);
      if (!tile) {
        return {StatusCode::invalid_argument,
                fmt::format("machine.stores \"{}\" holds \"{}\"; accepted: q, k, v, s, p, o, each "
                            "alone or as a block such as s[128x64]",
                            machine.stores[index].name, word)};
      }
      tiles.push_back(*tile);
    }
  }
  return {};
}

/// Finds ways over links; places are stores by index, then "cache", then "memory".
class Ways {
 public:
  explicit Ways(const Machine& machine) : machine_(machine) {}

  std::size_t cache() const { return machine_.stores.size(); }
  std::size_t memory() const { return machine_.stores.size() + 1; }

  /// Links of the shortest way, without passing off chip unless allowed; nothing if there is none.
  std::optional<std::vector<std::size_t>> find(std::size_t from, std::size_t to,
                                               bool off_chip) const {
    const std::size_t places = memory() + 1;
    std::vector<std::optional<std::size_t>> arrived(places);  // over which link
    std::vector<std::size_t> queue{from};
    for (std::size_t next = 0; next < queue.size(); ++next) {
      const std::size_t at = queue[next];
      if (at == to) break;
      for (std::size_t l = 0; l < machine_.links.size(); ++l) {
        const std::size_t end = place(machine_.links[l].to);
        if (place(machine_.links[l].from) != at || end == from || arrived[end]) continue;
        if (!off_chip && end >= cache() && end != to) continue;
        arrived[end] = l;
        queue.push_back(end);
      }
    }
    if (from != to && !arrived[to]) return std::nullopt;
    std::vector<std::size_t> links;
    for (std::size_t at = to; at != from; at = place(machine_.links[*arrived[at]].from)) {
      links.insert(links.begin(), *arrived[at]);
    }
    return links;
  }

 private:
  std::size_t place(const std::string& name) const {
    if (name == "memory") return memory();
    for (std::size_t i = 0; i < machine_.stores.size(); ++i) {
      if (machine_.stores[i].name == name) return i;
    }
    return cache();
  }

  const Machine& machine_;
};

class Router {
 public:
  Router(const Machine& machine, Placement& placement)
      : machine_(machine), ways_(machine), placement_(placement) {}

  void route() {
    const auto inward = [&](TileTensor tensor, bool once) {
      std::vector<std::size_t> stops = stores_of(tensor);
      std::reverse(stops.begin(), stops.end());
      std::size_t from = ways_.cache();
      for (const std::size_t stop : stops) {
        // A block of Q is loaded anew for every key tile: its store keeps no whole one.
        pass(from, stop, tensor, once && whole(tensor, stop));
        from = stop;
      }
    };
    inward(TileTensor::q, true);
    inward(TileTensor::k, false);
    inward(TileTensor::v, false);
    const std::vector<std::size_t> s = stores_of(TileTensor::s);
    placement_.softmax_store = s.back();
    placement_.hand_off.s = pass(s.front(), s.back(), TileTensor::s, false);
    std::vector<std::size_t> p = stores_of(TileTensor::p);
    std::size_t from = s.back();
    std::reverse(p.begin(), p.end());
    for (const std::size_t stop : p) {
      if (stop == from) continue;
      placement_.hand_off.p = pass(from, stop, TileTensor::p, false) || placement_.hand_off.p;
      from = stop;
    }
    const std::vector<std::size_t> o = stores_of(TileTensor::o);
    placement_.hand_off.o = pass(o.front(), o.back(), TileTensor::o, false);
    pass(o.back(), ways_.cache(), TileTensor::o, true);
  }

 private:
  std::vector<std::size_t> stores_of(TileTensor tensor) const {
    std::vector<std::size_t> stores;
    for (const PlacedTile& tile : placement_.tiles) {
      if (tile.tensor == tensor) stores.push_back(tile.store);
    }
    return stores;
  }

  bool whole(TileTensor tensor, std::size_t store) const {
    return std::any_of(placement_.tiles.begin(), placement_.tiles.end(), [&](const PlacedTile& t) {
      return t.tensor == tensor && t.store == store && t.whole();
    });
  }

  /// Notes the links of a way. True if it leads off chip between two stores.
  bool pass(std::size_t from, std::size_t to, TileTensor tensor, bool once) {
    if (from == to) return false;
    const bool between_stores = from < ways_.cache() && to < ways_.cache();
    auto links = ways_.find(from, to, false);
    const bool off_chip = between_stores && !links && !machine_.links.empty();
    if (!links) links = ways_.find(from, to, true);
    if (links) {
      for (const std::size_t link : *links) placement_.links.push_back({link, tensor, once});
    }
    return off_chip;
  }

  const Machine& machine_;
  Ways ways_;
  Placement& placement_;
};

std::string_view what(const PlacedTile& tile, Index copies) {
  constexpr std::string_view kTiles[] = {"q tile", "k tile",        "v tile",
                                         "scores", "probabilities", "o tile"};
  constexpr std::string_view kBlocks[] = {"q block",     "k block",           "v block",
                                          "score block", "probability block", "o block"};
  constexpr std::string_view kInFlight[] = {"", "k tiles in flight", "v tiles in flight", "", "",
                                            ""};
  const auto index = static_cast<std::size_t>(tile.tensor);
  if (!tile.whole()) return kBlocks[index];
  return copies > 1 ? kInFlight[index] : kTiles[index];
}

Index clipped(Index size, Index most) {
  return most > 0 ? schedule::min(size, most) : size;
}

}  // namespace

std::string_view name(TileTensor tensor) noexcept {
  constexpr std::string_view kNames[] = {"q", "k", "v", "s", "p", "o"};
  return kNames[static_cast<std::size_t>(tensor)];
}

Result<Placement> Placement::create(const Machine& machine) {
  Placement placement;
  Status status = parse_holds(machine, placement.tiles);
  if (!status.ok()) return status;
  for (const TileTensor tensor : kTensors) {
    if (tensor == TileTensor::p) continue;  // replaces s in place
    const bool placed = std::any_of(placement.tiles.begin(), placement.tiles.end(),
                                    [&](const PlacedTile& t) { return t.tensor == tensor; });
    if (!placed) {
      return Status{StatusCode::invalid_argument,
                    fmt::format("machine \"{}\" has no store that holds {}; accepted: each of q, "
                                "k, v, s, o in some store's holds",
                                machine.id, name(tensor))};
    }
  }
  Router(machine, placement).route();
  return placement;
}

std::vector<PlacedBytes> placed_bytes(const Placement& placement, const Machine& machine,
                                      const TileShape& shape) {
  std::vector<PlacedBytes> bytes;
  bytes.reserve(placement.tiles.size() + 1);
  const auto q_rows = [&](std::size_t store) {
    return schedule::ceil_div(shape.tile.q_rows, machine.stores[store].count_per_unit);
  };
  for (const PlacedTile& tile : placement.tiles) {
    Index rows = q_rows(tile.store);
    Index columns = shape.qk_dim;
    Index element = shape.element_bytes;
    Index copies = 1;
    switch (tile.tensor) {
      case TileTensor::q:
        break;
      case TileTensor::k:
      case TileTensor::v:
        rows = shape.tile.kv_rows;
        columns = tile.tensor == TileTensor::k ? shape.qk_dim : shape.v_dim;
        copies = tile.whole() ? shape.stages : 1;
        break;
      case TileTensor::s:
        columns = shape.tile.kv_rows;
        element = 4;
        break;
      case TileTensor::p:
        columns = shape.tile.kv_rows;
        break;
      case TileTensor::o:
        columns = shape.v_dim;
        element = 4;
        break;
    }
    bytes.push_back(
        {tile.store, what(tile, copies),
         clipped(rows, tile.most_rows) * clipped(columns, tile.most_columns) * element * copies});
  }
  bytes.push_back(
      {placement.softmax_store, "row maxima and sums", q_rows(placement.softmax_store) * 2 * 4});
  return bytes;
}

StandardSoftmax standard_softmax(const Machine& machine, const Placement& placement,
                                 const TrafficShape& shape) {
  const Index have = capacity_bytes(machine, machine.stores[placement.softmax_store]);
  StandardSoftmax softmax;
  softmax.row_fits = have == 0 || shape.rule.kv_len * 4 <= have;
  return softmax;
}

Index capacity_bytes(const Machine& machine, const Store& store) {
  if (!store.capacity_bytes.known()) return 0;
  const double shared = store.unit == "device" ? static_cast<double>(machine.units) : 1;
  return static_cast<Index>(store.capacity_bytes.value / shared);
}

}  // namespace tilewright
