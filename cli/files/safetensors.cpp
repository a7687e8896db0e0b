// cli/files/safetensors.cpp: reads and writes .safetensors files.
#include "files/safetensors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "files/error_text.h"

namespace tilewright::files {
namespace {

struct KnownType {
  std::string_view name;
  DType dtype;
  bool f64 = false;
};
constexpr std::array kKnownTypes = {
    KnownType{"F32", DType::f32},      KnownType{"F16", DType::f16},
    KnownType{"BF16", DType::bf16},    KnownType{"F64", DType::f32, true},
    KnownType{"I32", DType::i32},      KnownType{"I64", DType::i64},
    KnownType{"BOOL", DType::boolean},
};

std::string_view type_name(DType dtype) {
  for (const KnownType& known : kKnownTypes) {
    if (known.dtype == dtype && !known.f64) return known.name;
  }
  return "F32";
}

std::int64_t array_bytes(const NamedArray& array) {
  return count_elements(array.shape).value_or(0) *
         static_cast<std::int64_t>(size_bytes(array.dtype));
}

// The length, then JSON padded with blanks so that the data begins at a multiple of 64 bytes.
std::string header_text(std::span<const NamedArray> arrays) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  std::int64_t offset = 0;
  for (const NamedArray& array : arrays) {
    const std::int64_t end = offset + array_bytes(array);
    header[array.name] = {
        {"dtype", type_name(array.dtype)}, {"shape", array.shape}, {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string json = header.dump();
  constexpr std::size_t kLengthBytes = 8;
  constexpr std::size_t kAlignment = 64;
  json.append((kAlignment - (kLengthBytes + json.size()) % kAlignment) % kAlignment, ' ');
  std::string out;
  for (std::size_t i = 0; i < kLengthBytes; ++i) {
    out += static_cast<char>(json.size() >> (8 * i) & 0xff);
  }
  return out + json;
}

}  // namespace

Result<SafetensorsFile> SafetensorsFile::open(const std::string& path) {
  auto file = FileBytes::open(path);
  if (!file.ok()) return file.status();
  return open(quote(path), std::move(*file));
}

Result<SafetensorsFile> SafetensorsFile::open(std::string label,
                                              std::shared_ptr<const FileBytes> file) {
  Result<SafetensorsEntries> entries = parse_safetensors_header(label, file->bytes());
  if (!entries.ok()) return entries.status();
  SafetensorsFile opened;
  opened.label_ = std::move(label);
  opened.file_ = std::move(file);
  opened.entries_ = std::move(*entries);
  return opened;
}

std::vector<std::string> SafetensorsFile::names() const {
  std::vector<std::string> names;
  for (const auto& [name, entry] : entries_) names.push_back(name);
  return names;
}

Result<Array> SafetensorsFile::tensor(const std::string& name) const {
  const auto found = entries_.find(name);
  if (found == entries_.end()) {
    std::string have;
    for (const auto& [other, entry] : entries_) {
      if (have.size() < 200) have += (have.empty() ? "" : ", ") + quote(other);
    }
    return Status{StatusCode::invalid_argument,
                  fmt::format("{}: tensor {} is absent; the file has: {}", label_, quote(name),
                              have.empty() ? "none" : have)};
  }
  const SafetensorsEntry& entry = found->second;
  for (const KnownType& known : kKnownTypes) {
    if (entry.dtype != known.name) continue;
    StoredType type;
    type.dtype = known.dtype;
    type.f64 = known.f64;
    return make_array(label_ + " tensor " + quote(name), type, entry.shape, false,
                      file_->bytes().subspan(entry.begin, entry.end - entry.begin), file_);
  }
  return Status{
      StatusCode::invalid_argument,
      fmt::format("{}: {}.dtype is {}; accepted: F32, F16, BF16, F64 (rounded to f32), I32, I64, "
                  "BOOL",
                  label_, quote(name), quote(entry.dtype))};
}

std::int64_t safetensors_file_bytes(std::span<const NamedArray> arrays) {
  auto bytes = static_cast<std::int64_t>(header_text(arrays).size());
  for (const NamedArray& array : arrays) bytes += array_bytes(array);
  return bytes;
}

Status write_safetensors(OutputFile& file, std::span<const NamedArray> arrays) {
  const std::string header = header_text(arrays);
  Status status = file.write(header.data(), header.size());
  for (const NamedArray& array : arrays) {
    if (!status.ok()) break;
    status = file.write(array.data, static_cast<std::size_t>(array_bytes(array)));
  }
  return status;
}

}  // namespace tilewright::files
