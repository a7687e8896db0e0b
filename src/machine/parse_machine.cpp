// src/machine/parse_machine.cpp: reads a machine profile (TOML).
#define TOML_EXCEPTIONS 0
#define TOML_HEADER_ONLY 1
#define TOML_ENABLE_FORMATTERS 0
#include <fmt/format.h>
#include <toml++/toml.h>

#include <initializer_list>

#include "tilewright/machine.h"

namespace tilewright {
namespace {

/// Reads fields of one profile and remembers the first fault.
class Reader {
 public:
  Reader(std::string_view id, const toml::table& root) : id_(id), root_(root) {}

  const Status& status() const { return status_; }

  void fail(const toml::node* at, std::string what) {
    if (!status_.ok()) return;
    const auto line = at != nullptr ? at->source().begin.line : 0;
    status_ = {StatusCode::invalid_argument,
               fmt::format("profile {}, line {}: {}", id_, line, what)};
  }

  /// Refuses keys that nothing reads: a misspelt figure would silently stay unknown.
  void allow(const toml::table& table, std::string_view where,
             std::initializer_list<std::string_view> keys) {
    for (const auto& [key, node] : table) {
      bool known = false;
      for (const std::string_view accepted : keys) known = known || key.str() == accepted;
      if (known) continue;
      std::string list;
      for (const std::string_view accepted : keys) list += fmt::format(" {}", accepted);
      fail(&node, fmt::format("{} has a field {}; accepted:{}", where, key.str(), list));
    }
  }

  std::string text(const toml::table& table, std::string_view key, bool needed = true) {
    const toml::node* node = table.get(key);
    if (node == nullptr) {
      if (needed) fail(&table, fmt::format("{} is missing; accepted: a string", key));
      return {};
    }
    const auto value = node->value<std::string>();
    if (!node->is_string()) fail(node, fmt::format("{} is not a string", key));
    return value.value_or("");
  }

  std::int64_t count(const toml::table& table, std::string_view key, std::int64_t otherwise) {
    const toml::node* node = table.get(key);
    if (node == nullptr) return otherwise;
    const auto value = node->value<std::int64_t>();
    if (!node->is_integer() || value.value_or(0) < 1) {
      fail(node, fmt::format("{} is no count; accepted: an integer of 1 or more", key));
    }
    return value.value_or(otherwise);
  }

  /// { value = ..., grade = "read", source = "key, key", how = "..." }; absent where the key is.
  Figure figure(const toml::table& table, std::string_view key) {
    const toml::node* node = table.get(key);
    if (node == nullptr) return {};
    const toml::table* fields = node->as_table();
    if (fields == nullptr) {
      fail(node, fmt::format("{} is no figure; accepted: {{ value, grade, source, how }}", key));
      return {};
    }
    allow(*fields, key, {"value", "grade", "source", "how"});
    Figure figure;
    const toml::node* value = fields->get("value");
    if (value == nullptr || !value->is_number() || !(value->value<double>().value_or(0) > 0)) {
      fail(node, fmt::format("{}.value is missing or not above 0; accepted: a number", key));
    } else {
      figure.value = value->value<double>().value_or(0);
    }
    const std::string grade = text(*fields, "grade");
    figure.grade = grade_of(grade);
    if (figure.grade == Grade::absent) {
      fail(node, fmt::format("{}.grade is \"{}\"; accepted: recalled, derived, read, measured", key,
                             grade));
    }
    figure.source = text(*fields, "how", false);
    const std::string documents = sources(node, text(*fields, "source", false));
    if (figure.source.empty()) {
      figure.source = documents;
    } else if (!documents.empty()) {
      figure.source += "; " + documents;
    }
    if (figure.source.empty()) fail(node, fmt::format("{} has neither source nor how", key));
    return figure;
  }

 private:
  static Grade grade_of(std::string_view word) {
    for (const Grade grade : {Grade::recalled, Grade::derived, Grade::read, Grade::measured}) {
      if (name(grade) == word) return grade;
    }
    return Grade::absent;
  }

  /// The documents behind keys such as "gh100-wp, cuda-cc".
  std::string sources(const toml::node* at, std::string_view keys) {
    std::string documents;
    while (!keys.empty()) {
      const std::size_t comma = keys.find(',');
      std::string_view key = keys.substr(0, comma);
      keys.remove_prefix(comma == std::string_view::npos ? keys.size() : comma + 1);
      while (!key.empty() && key.front() == ' ') key.remove_prefix(1);
      const auto document = root_["sources"][key].value<std::string>();
      if (!document) fail(at, fmt::format("source \"{}\" is not in [sources]", key));
      documents += (documents.empty() ? "" : "; ") + document.value_or("");
    }
    return documents;
  }

  std::string_view id_;
  const toml::table& root_;
  Status status_;
};

MachineKind kind_of(Reader& reader, const toml::table& root) {
  const std::string word = reader.text(root, "kind");
  for (const MachineKind kind : {MachineKind::cpu, MachineKind::gpu, MachineKind::npu}) {
    if (name(kind) == word) return kind;
  }
  reader.fail(root.get("kind"), fmt::format("kind is \"{}\"; accepted: cpu, gpu, npu", word));
  return MachineKind::npu;
}

void read_figures(Reader& reader, const toml::table& figures, Machine& m) {
  const struct {
    std::string_view key;
    Figure* figure;
  } fields[] = {{"units", &m.unit_count},
                {"clock_hz", &m.clock_hz},
                {"cache_bytes", &m.cache_bytes},
                {"memory_bytes", &m.memory_bytes},
                {"memory_bytes_per_second", &m.memory_bytes_per_second},
                {"f32_flops_per_second", &m.f32_flops_per_second},
                {"bf16_flops_per_second", &m.bf16_flops_per_second},
                {"f16_flops_per_second", &m.f16_flops_per_second},
                {"fp8_flops_per_second", &m.fp8_flops_per_second},
                {"exp_per_second", &m.exp_per_second},
                {"registers_bytes_per_unit", &m.registers_bytes_per_unit},
                {"interconnect_bytes_per_second", &m.interconnect_bytes_per_second}};
  reader.allow(figures, "[figures]",
               {"units", "clock_hz", "cache_bytes", "memory_bytes", "memory_bytes_per_second",
                "f32_flops_per_second", "bf16_flops_per_second", "f16_flops_per_second",
                "fp8_flops_per_second", "exp_per_second", "registers_bytes_per_unit",
                "interconnect_bytes_per_second"});
  for (const auto& field : fields) *field.figure = reader.figure(figures, field.key);
  m.units = m.unit_count.known() ? static_cast<std::int64_t>(m.unit_count.value) : 1;
}

/// Calls read(table) for each [[name]].
template <typename Read>
void each_table(Reader& reader, const toml::table& root, std::string_view name, Read read) {
  const toml::node* node = root.get(name);
  if (node == nullptr) return;
  if (node->as_array() == nullptr) {
    reader.fail(node, fmt::format("{} is no array of tables", name));
    return;
  }
  for (const toml::node& entry : *node->as_array()) {
    if (const toml::table* table = entry.as_table()) {
      read(*table);
    } else {
      reader.fail(&entry, fmt::format("{} holds something that is no table", name));
    }
  }
}

void read_machine(Reader& reader, const toml::table& root, Machine& m) {
  reader.allow(root, "the profile",
               {"name", "vendor", "arch", "kind", "unit_kind", "memory_kind", "features", "note",
                "sources", "figures", "store", "link", "other"});
  m.name = reader.text(root, "name");
  m.vendor = reader.text(root, "vendor");
  m.arch = reader.text(root, "arch");
  m.kind = kind_of(reader, root);
  m.unit_kind = reader.text(root, "unit_kind");
  m.memory_kind = reader.text(root, "memory_kind", false);
  m.note = reader.text(root, "note", false);
  if (const toml::array* features = root["features"].as_array()) {
    for (const toml::node& feature : *features) {
      m.features.push_back(feature.value<std::string>().value_or(""));
    }
  }
  if (const toml::table* figures = root["figures"].as_table()) read_figures(reader, *figures, m);
  if (const toml::table* other = root["other"].as_table()) {
    for (const auto& [key, node] : *other) reader.figure(*other, key.str());
  }
  each_table(reader, root, "store", [&](const toml::table& table) {
    reader.allow(table, "[[store]]",
                 {"name", "holds", "unit", "count_per_unit", "capacity_bytes",
                  "bandwidth_bytes_per_second"});
    m.stores.push_back({reader.text(table, "name"), reader.text(table, "holds"),
                        reader.text(table, "unit"), reader.count(table, "count_per_unit", 1),
                        reader.figure(table, "capacity_bytes"),
                        reader.figure(table, "bandwidth_bytes_per_second")});
  });
  each_table(reader, root, "link", [&](const toml::table& table) {
    reader.allow(table, "[[link]]", {"from", "to", "unit", "bytes_per_second"});
    const Link link = {reader.text(table, "from"), reader.text(table, "to"),
                       reader.text(table, "unit"), reader.figure(table, "bytes_per_second")};
    for (const std::string& end : {link.from, link.to}) {
      if (end != "cache" && end != "memory" && m.store(end) == nullptr) {
        reader.fail(&table, fmt::format("a link ends at \"{}\"; accepted: a store's name, cache, "
                                        "memory",
                                        end));
      }
    }
    m.links.push_back(link);
  });
  if (m.stores.empty()) reader.fail(&root, "there is no [[store]]; accepted: one or more");
}

}  // namespace

Result<Machine> parse_machine(std::string_view toml, std::string_view id) {
  const toml::parse_result parsed = toml::parse(toml);
  if (!parsed) {
    return Status{StatusCode::invalid_argument,
                  fmt::format("profile {}, line {}: {}", id, parsed.error().source().begin.line,
                              parsed.error().description())};
  }
  Machine machine;
  machine.id = id;
  Reader reader(id, parsed.table());
  read_machine(reader, parsed.table(), machine);
  if (!reader.status().ok()) return reader.status();
  return machine;
}

}  // namespace tilewright
