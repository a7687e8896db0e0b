// cli/files/npy_header.cpp: parses and writes the header of a .npy file.
#include "files/npy_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

#include "files/error_text.h"

namespace tilewright::files {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kMaxHeaderBytes = 1 << 20;
constexpr std::size_t kMaxRank = 32;  // NumPy's own limit
constexpr std::string_view kAcceptedTypes =
    "f4, f2, f8 (rounded to f32), bfloat16 (or V2, as ml_dtypes writes it), i4, i8, b1";

Status refuse(const std::string& label, std::string_view field, std::string_view value,
              std::string_view accepted) {
  return {StatusCode::invalid_argument,
          fmt::format("{}: {} is {}; accepted: {}", label, field, value, accepted)};
}

// Reads the few forms of Python literal that occur in such a header. Every function leaves the
// position where it was when it returns nothing.
class LiteralReader {
 public:
  explicit LiteralReader(std::string_view text) : text_(text) {}

  bool take(char c) {
    skip_space();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  bool at_end() {
    skip_space();
    return at_ == text_.size();
  }

  std::optional<std::string> string() {
    const std::size_t start = at_;
    for (const char mark : {'\'', '"'}) {
      if (!take(mark)) continue;
      const std::size_t end = text_.find(mark, at_);
      const std::string_view inside = text_.substr(at_, end - at_);
      // No key or type that we know has an escape in it.
      if (end == std::string_view::npos || inside.find('\\') != std::string_view::npos) break;
      at_ = end + 1;
      return std::string(inside);
    }
    at_ = start;
    return std::nullopt;
  }

  std::optional<bool> boolean() {
    if (word("True")) return true;
    if (word("False")) return false;
    return std::nullopt;
  }

  std::optional<std::vector<std::int64_t>> tuple() {
    const std::size_t start = at_;
    std::vector<std::int64_t> values;
    bool comma = true;
    if (take('(')) {
      while (!take(')')) {
        const auto value = comma ? integer() : std::nullopt;
        if (!value || values.size() > kMaxRank) {
          at_ = start;
          return std::nullopt;
        }
        values.push_back(*value);
        comma = take(',');
      }
      // (3) is a number in Python; only (3,) is a tuple.
      if (values.size() != 1 || comma) return values;
    }
    at_ = start;
    return std::nullopt;
  }

  std::string_view rest() {
    skip_space();
    return text_.substr(at_);
  }

 private:
  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || (text_[at_] >= '\t' && text_[at_] <= '\r')))
      ++at_;
  }

  bool word(std::string_view expected) {
    skip_space();
    if (text_.substr(at_, expected.size()) != expected) return false;
    at_ += expected.size();
    return true;
  }

  std::optional<std::int64_t> integer() {
    skip_space();
    std::int64_t value = 0;
    const char* begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (error != std::errc{}) return std::nullopt;
    at_ += static_cast<std::size_t>(end - begin);
    // Python 2 wrote long integers as 3L.
    if (at_ < text_.size() && text_[at_] == 'L') ++at_;
    return value;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

std::optional<StoredType> parse_type(std::string_view descr) {
  if (descr == "bfloat16") return StoredType{DType::bf16};
  StoredType type;
  if (!descr.empty() && std::string_view("<>|=").find(descr.front()) != std::string_view::npos) {
    type.big_endian = descr.front() == '>';
    descr.remove_prefix(1);
  }
  struct Known {
    std::string_view descr;
    DType dtype;
    bool f64 = false;
  };
  constexpr std::array kKnown = {
      Known{"f4", DType::f32},     Known{"f2", DType::f16}, Known{"f8", DType::f32, true},
      Known{"V2", DType::bf16},    Known{"i4", DType::i32}, Known{"i8", DType::i64},
      Known{"b1", DType::boolean},
  };
  for (const Known& known : kKnown) {
    if (descr != known.descr) continue;
    // Void types have no byte order, so what '>V2' would mean is open.
    if (known.dtype == DType::bf16 && type.big_endian) break;
    type.dtype = known.dtype;
    type.f64 = known.f64;
    return type;
  }
  return std::nullopt;
}

struct Found {
  bool descr = false, fortran_order = false, shape = false;
};

// One `key: value` of the dict.
Status parse_entry(const std::string& label, LiteralReader& reader, NpyHeader& header,
                   Found& found) {
  const std::optional<std::string> key = reader.string();
  if (!key || !reader.take(':')) {
    return refuse(label, "header", quote(reader.rest()) + " where a 'key': should be",
                  "a dict with descr, fortran_order and shape");
  }
  bool* seen = *key == "descr"           ? &found.descr
               : *key == "fortran_order" ? &found.fortran_order
               : *key == "shape"         ? &found.shape
                                         : nullptr;
  if (seen == nullptr) {
    return refuse(label, "header key", quote(*key), "descr, fortran_order, shape");
  }
  if (std::exchange(*seen, true)) {
    return refuse(label, "header key", quote(*key) + " a second time", "each key once");
  }
  if (seen == &found.descr) {
    const std::string_view before = reader.rest();
    const std::optional<std::string> descr = reader.string();
    const auto type = descr ? parse_type(*descr) : std::nullopt;
    if (!type) {
      return refuse(label, "descr", descr ? quote(*descr) : quote(before.substr(0, 40)),
                    kAcceptedTypes);
    }
    header.type = *type;
  } else if (seen == &found.fortran_order) {
    const std::optional<bool> value = reader.boolean();
    if (!value) return refuse(label, "fortran_order", quote(reader.rest()), "True, False");
    header.fortran_order = *value;
  } else {
    const std::string_view before = reader.rest();
    auto shape = reader.tuple();
    if (!shape) {
      return refuse(label, "shape", quote(before.substr(0, 60)),
                    "a tuple of at most 32 integers, such as (4096, 8, 128)");
    }
    if (!count_elements(*shape)) {
      return refuse(label, "shape", shape_text(*shape),
                    "extents of 0 or more, with a product of at most 2^62");
    }
    header.shape = std::move(*shape);
  }
  return {};
}

Status parse_dict(const std::string& label, std::string_view text, NpyHeader& header) {
  LiteralReader reader(text);
  Found found;
  if (!reader.take('{')) {
    return refuse(label, "header", quote(text), "a Python dict, such as {'descr': '<f4', ...}");
  }
  while (!reader.take('}')) {
    Status status = parse_entry(label, reader, header, found);
    if (!status.ok()) return status;
    if (reader.take(',')) continue;
    if (reader.take('}')) break;
    return refuse(label, "header", quote(reader.rest()) + " after a value", "',' or '}'");
  }
  if (!reader.at_end()) {
    return refuse(label, "header", quote(reader.rest()) + " after its dict", "blanks");
  }
  for (const auto& [seen, key] : {std::pair{found.descr, "descr"},
                                  {found.fortran_order, "fortran_order"},
                                  {found.shape, "shape"}}) {
    if (!seen) return refuse(label, std::string("header key ") + key, "absent", "each key once");
  }
  return {};
}

}  // namespace

Result<NpyHeader> parse_npy_header(const std::string& label, std::span<const std::byte> file) {
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  if (text.substr(0, kMagic.size()) != kMagic) {
    return refuse(label, "magic",
                  text.empty() ? "absent: the file is empty" : quote(text.substr(0, kMagic.size())),
                  "'\\x93NUMPY', the start of a .npy file");
  }
  const auto number = [&](std::size_t at, std::size_t bytes) {
    std::size_t value = 0;
    for (std::size_t i = bytes; i-- > 0;)
      value = value << 8 | std::to_integer<std::size_t>(file[at + i]);
    return value;
  };
  const std::string truncated = fmt::format("{} bytes, fewer than its header needs", file.size());
  if (file.size() < 10) return refuse(label, "file size", truncated, "a whole file");
  const std::size_t major = number(6, 1);
  const std::size_t minor = number(7, 1);
  if (major < 1 || major > 3 || minor != 0) {
    return refuse(label, "version", fmt::format("{}.{}", major, minor), "1.0, 2.0, 3.0");
  }
  const std::size_t length_bytes = major == 1 ? 2 : 4;
  const std::size_t start = 8 + length_bytes;
  if (file.size() < start) return refuse(label, "file size", truncated, "a whole file");
  const std::size_t length = number(8, length_bytes);
  if (length > std::min(kMaxHeaderBytes, file.size() - start)) {
    return refuse(label, "header length", fmt::format("{}", length),
                  fmt::format("at most {}, and at most the {} bytes that follow it",
                              kMaxHeaderBytes, file.size() - start));
  }
  NpyHeader header;
  header.data_offset = start + length;
  Status status = parse_dict(label, text.substr(start, length), header);
  if (!status.ok()) return status;
  return header;
}

std::string npy_header_text(DType dtype, std::span<const std::int64_t> shape) {
  const char* descr = "<f4";
  if (dtype == DType::f16) descr = "<f2";
  if (dtype == DType::bf16) descr = "<V2";
  if (dtype == DType::i32) descr = "<i4";
  if (dtype == DType::i64) descr = "<i8";
  if (dtype == DType::boolean) descr = "|b1";
  std::string dict = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': {}, }}", descr,
                                 shape_text(shape));
  constexpr std::size_t kPreludeBytes = 10;
  constexpr std::size_t kAlignment = 64;
  const std::size_t unpadded = kPreludeBytes + dict.size() + 1;
  dict.append((kAlignment - unpadded % kAlignment) % kAlignment, ' ');
  dict += '\n';
  std::string out(kMagic);
  out +=
      {'\x01', '\x00', static_cast<char>(dict.size() & 0xff), static_cast<char>(dict.size() >> 8)};
  return out + dict;
}

}  // namespace tilewright::files
