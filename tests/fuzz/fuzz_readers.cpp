// tests/fuzz/fuzz_readers.cpp: libFuzzer's entry: any bytes as a .npy or .safetensors file.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "files/npy.h"
#include "files/safetensors.h"

namespace {

using tilewright::Result;
using tilewright::StatusCode;
using tilewright::files::Array;
using tilewright::files::FileBytes;
using tilewright::files::SafetensorsFile;

std::shared_ptr<const FileBytes> as_file(const std::string& text) {
  const auto* bytes = reinterpret_cast<const std::byte*>(text.data());
  return FileBytes::of(std::vector<std::byte>(bytes, bytes + text.size()));
}

// A wrong code, or an element outside the memory that AddressSanitizer knows, ends the process.
void check(const Result<Array>& array) {
  if (!array.ok()) {
    if (array.status().code() != StatusCode::invalid_argument) std::abort();
    return;
  }
  unsigned sum = 0;
  const auto* bytes = static_cast<const unsigned char*>(array->data);
  for (std::int64_t i = 0; i < array->bytes(); ++i) sum += bytes[i];
  static volatile unsigned keep;
  keep = sum;
}

std::string little_endian(std::size_t value, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i) & 0xff);
  return out;
}

}  // namespace

// The first byte says whether the rest is a whole file, or a header up to a line's end and its
// data, which gets past the lengths that chance would hardly get right.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::size_t header = std::min(rest.find('\n'), rest.size() - 1) + 1;
  std::string file = rest;
  if (data[0] % 4 == 1) file = std::string("\x93NUMPY\1\0", 8) + little_endian(header, 2) + rest;
  if (data[0] % 4 == 2) file = std::string("\x93NUMPY\3\0", 8) + little_endian(header, 4) + rest;
  if (data[0] % 4 == 3) file = little_endian(header, 8) + rest;
  check(tilewright::files::read_npy("x", as_file(file)));
  const Result<SafetensorsFile> tensors = SafetensorsFile::open("x", as_file(file));
  if (!tensors.ok()) {
    if (tensors.status().code() != StatusCode::invalid_argument) std::abort();
    return 0;
  }
  for (const std::string& name : tensors->names()) check(tensors->tensor(name));
  return 0;
}
