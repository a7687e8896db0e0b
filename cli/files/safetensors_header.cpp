// cli/files/safetensors_header.cpp: parses and checks the JSON header of a .safetensors file.
#include "files/safetensors_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "files/array.h"
#include "files/error_text.h"

namespace tilewright::files {
namespace {

using nlohmann::json;

constexpr std::size_t kLengthBytes = 8;
constexpr std::size_t kMaxHeaderBytes = 100'000'000;  // the format's own limit
constexpr std::size_t kMaxRank = 32;

// Bytes of one element, for the format's types; 0 for a type added since.
std::size_t element_bytes(std::string_view dtype) {
  for (const std::string_view one : {"BOOL", "U8", "I8", "F8_E4M3", "F8_E5M2", "F8_E8M0"}) {
    if (dtype == one) return 1;
  }
  for (const std::string_view two : {"I16", "U16", "F16", "BF16"}) {
    if (dtype == two) return 2;
  }
  for (const std::string_view four : {"I32", "U32", "F32"}) {
    if (dtype == four) return 4;
  }
  for (const std::string_view eight : {"I64", "U64", "F64", "C64"}) {
    if (dtype == eight) return 8;
  }
  return 0;
}

// Takes the header's events one by one, so that a hostile header costs no more memory than the
// entries in it. Accepts {"name": {"dtype": "F32", "shape": [..], "data_offsets": [b, e]}, ...,
// "__metadata__": {"key": "text", ...}}.
class HeaderReader final : public json::json_sax_t {
 public:
  explicit HeaderReader(std::string label) : label_(std::move(label)) {}

  Status status() const { return status_; }
  SafetensorsEntries take_entries() { return std::move(entries_); }

  bool start_object(std::size_t) override {
    if (depth_ == 0 || (depth_ == 1 && !name_.empty())) {
      ++depth_;
      fields_ = {};
      metadata_keys_.clear();
      return true;
    }
    return refuse_value("an object");
  }

  bool key(string_t& text) override {
    if (depth_ == 1) {
      name_ = text;
      metadata_ = text == "__metadata__";
      if (text.empty()) return refuse("a tensor's name", "empty", "a name");
      if (metadata_ ? std::exchange(has_metadata_, true) : entries_.count(text) > 0) {
        return refuse("key", quote(text) + " a second time", "each name once");
      }
      return true;
    }
    field_ = text;
    if (metadata_) {
      if (metadata_keys_[text]++ > 0) {
        return refuse("__metadata__ key", quote(text) + " a second time", "each key once");
      }
      return true;
    }
    bool* seen = text == "dtype"          ? &fields_.dtype
                 : text == "shape"        ? &fields_.shape
                 : text == "data_offsets" ? &fields_.offsets
                                          : nullptr;
    if (seen == nullptr) return refuse_field(quote(text), "dtype, shape, data_offsets");
    if (std::exchange(*seen, true)) return refuse_field(quote(text) + " a second time", "once");
    return true;
  }

  bool end_object() override {
    --depth_;
    if (depth_ != 1 || metadata_) return true;
    if (!fields_.dtype || !fields_.shape || !fields_.offsets) {
      return refuse(quote(name_), "without one of its fields", "dtype, shape and data_offsets");
    }
    if (offsets_.size() != 2) {
      return refuse(quote(name_) + ".data_offsets", fmt::format("a list of {}", offsets_.size()),
                    "[begin, end]");
    }
    entry_.begin = static_cast<std::size_t>(offsets_[0]);
    entry_.end = static_cast<std::size_t>(offsets_[1]);
    entries_[name_] = std::exchange(entry_, {});
    offsets_.clear();
    return true;
  }

  bool start_array(std::size_t) override {
    if (depth_ != 2 || metadata_ || in_array_ || (field_ != "shape" && field_ != "data_offsets")) {
      return refuse_value("a list");
    }
    in_array_ = true;
    return true;
  }

  bool end_array() override {
    in_array_ = false;
    return true;
  }

  bool number_unsigned(number_unsigned_t value) override {
    if (!in_array_ || value > (std::uint64_t{1} << 62))
      return refuse_value(fmt::format("{}", value));
    auto& list = field_ == "shape" ? entry_.shape : offsets_;
    if (list.size() == kMaxRank) return refuse_value("a list of more than 32 numbers");
    list.push_back(static_cast<std::int64_t>(value));
    return true;
  }

  bool string(string_t& text) override {
    if (depth_ == 2 && metadata_) return true;
    if (depth_ != 2 || in_array_ || field_ != "dtype") return refuse_value(quote(text));
    entry_.dtype = text;
    return true;
  }

  bool number_integer(number_integer_t value) override {
    return refuse_value(fmt::format("{}", value));
  }
  bool number_float(number_float_t, const string_t& text) override {
    return refuse_value(quote(text));
  }
  bool null() override { return refuse_value("null"); }
  bool boolean(bool value) override { return refuse_value(value ? "true" : "false"); }
  bool binary(binary_t&) override { return refuse_value("binary"); }

  bool parse_error(std::size_t position, const std::string& token,
                   const nlohmann::detail::exception&) override {
    return refuse("header", fmt::format("no JSON at byte {}, at {}", position, quote(token)),
                  "JSON in UTF-8");
  }

 private:
  bool refuse(std::string_view field, std::string_view value, std::string_view accepted) {
    if (status_.ok()) {
      status_ = {StatusCode::invalid_argument,
                 fmt::format("{}: {} is {}; accepted: {}", label_, field, value, accepted)};
    }
    return false;
  }
  bool refuse_field(std::string_view value, std::string_view accepted) {
    return refuse(quote(name_) + " field", value, accepted);
  }
  // A value of the wrong kind for the place where it stands.
  bool refuse_value(std::string_view value) {
    if (depth_ == 0) return refuse("header", value, "an object");
    if (depth_ == 1) return refuse(quote(name_), value, "an object");
    if (metadata_) return refuse("__metadata__." + quote(field_), value, "text");
    return refuse(
        quote(name_) + "." + field_, value,
        field_ == "dtype" ? "a type's name, such as F32" : "a list of integers from 0 to 2^62");
  }

  struct Fields {
    bool dtype = false, shape = false, offsets = false;
  };

  std::string label_;
  Status status_;
  SafetensorsEntries entries_;
  int depth_ = 0;
  bool in_array_ = false;
  bool metadata_ = false, has_metadata_ = false;
  std::map<std::string, int> metadata_keys_;
  std::string name_, field_;
  Fields fields_;
  SafetensorsEntry entry_;
  std::vector<std::int64_t> offsets_;
};

Status check_entry(const std::string& label, const std::string& name, const SafetensorsEntry& entry,
                   std::size_t data_bytes) {
  const auto refuse = [&](std::string_view field, const std::string& value,
                          const std::string& accepted) {
    return Status{StatusCode::invalid_argument, fmt::format("{}: {}.{} is {}; accepted: {}", label,
                                                            quote(name), field, value, accepted)};
  };
  if (entry.begin > entry.end || entry.end > data_bytes) {
    return refuse("data_offsets", fmt::format("[{}, {}]", entry.begin, entry.end),
                  fmt::format("begin <= end <= {}, the bytes of data", data_bytes));
  }
  const std::optional<std::int64_t> count = count_elements(entry.shape);
  if (!count) {
    return refuse("shape", shape_text(entry.shape), "a product of at most 2^62");
  }
  const std::size_t element = element_bytes(entry.dtype);
  const std::size_t bytes = entry.end - entry.begin;
  if (element > 0 &&
      (static_cast<std::size_t>(*count) != bytes / element || bytes % element != 0)) {
    return refuse("data_offsets", fmt::format("[{}, {}]", entry.begin, entry.end),
                  fmt::format("as many bytes as shape {} of {} needs, {} each",
                              shape_text(entry.shape), entry.dtype, element));
  }
  return {};
}

// Tensors in the order of their offsets follow each other without overlap or gap, to the end.
Status check_cover(const std::string& label, const SafetensorsEntries& entries,
                   std::size_t data_bytes) {
  std::vector<const SafetensorsEntries::value_type*> order;
  for (const auto& entry : entries) order.push_back(&entry);
  std::sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
    return std::pair(a->second.begin, a->second.end) < std::pair(b->second.begin, b->second.end);
  });
  std::size_t covered = 0;
  for (const auto* entry : order) {
    if (entry->second.begin != covered) {
      return {
          StatusCode::invalid_argument,
          fmt::format("{}: {}.data_offsets is [{}, {}]; accepted: a begin of {}, where the "
                      "tensor before it ends, without overlap or gap",
                      label, quote(entry->first), entry->second.begin, entry->second.end, covered)};
    }
    covered = entry->second.end;
  }
  if (covered != data_bytes) {
    return {StatusCode::invalid_argument,
            fmt::format("{}: data is {} bytes, of which tensors cover {}; accepted: no bytes after "
                        "the last tensor",
                        label, data_bytes, covered)};
  }
  return {};
}

}  // namespace

Result<SafetensorsEntries> parse_safetensors_header(const std::string& label,
                                                    std::span<const std::byte> file) {
  const auto refuse = [&](std::string_view field, const std::string& value,
                          const std::string& accepted) {
    return Status{StatusCode::invalid_argument,
                  fmt::format("{}: {} is {}; accepted: {}", label, field, value, accepted)};
  };
  if (file.size() < kLengthBytes) {
    return refuse("file size", fmt::format("{} bytes", file.size()),
                  "at least 8, the length of a .safetensors header");
  }
  std::uint64_t length = 0;
  for (std::size_t i = kLengthBytes; i-- > 0;) {
    length = length << 8 | std::to_integer<std::uint64_t>(file[i]);
  }
  const std::size_t follow = file.size() - kLengthBytes;
  if (length > std::min(kMaxHeaderBytes, follow)) {
    return refuse("header length", fmt::format("{}", length),
                  fmt::format("at most {}, and at most the {} bytes that follow it",
                              kMaxHeaderBytes, follow));
  }
  const auto* text = reinterpret_cast<const char*>(file.data()) + kLengthBytes;
  if (length == 0 || *text != '{') {
    return refuse("header", quote(std::string_view(text, std::min<std::size_t>(length, 16))),
                  "JSON that begins with '{'");
  }
  HeaderReader reader(label);
  if (!json::sax_parse(text, text + length, &reader)) {
    Status status = reader.status();
    return status.ok() ? refuse("header", "no JSON", "JSON in UTF-8") : status;
  }
  SafetensorsEntries entries = reader.take_entries();
  const std::size_t data_bytes = follow - static_cast<std::size_t>(length);
  for (const auto& [name, entry] : entries) {
    Status status = check_entry(label, name, entry, data_bytes);
    if (!status.ok()) return status;
  }
  Status status = check_cover(label, entries, data_bytes);
  if (!status.ok()) return status;
  const std::size_t data_start = kLengthBytes + static_cast<std::size_t>(length);
  for (auto& [name, entry] : entries) {
    entry.begin += data_start;
    entry.end += data_start;
  }
  return entries;
}

}  // namespace tilewright::files
