// tests/cli/file_text.h: files written byte by byte, right and wrong ones, without the code under
// test.
#pragma once

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "files/file_bytes.h"

namespace tilewright::test {

/// The bytes of numbers as they lie in memory.
template <typename T>
std::string bytes_of(const std::vector<T>& values) {
  std::string bytes(values.size() * sizeof(T), '\0');
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

/// Each element's bytes in the other order.
inline std::string swapped(std::string bytes, std::size_t element) {
  for (std::size_t at = 0; at + element <= bytes.size(); at += element) {
    for (std::size_t i = 0; i < element / 2; ++i) {
      std::swap(bytes[at + i], bytes[at + element - 1 - i]);
    }
  }
  return bytes;
}

inline std::string little_endian(std::uint64_t value, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i) & 0xff);
  return out;
}

/// A .npy file with any header; padded as NumPy pads it unless told not to.
inline std::string npy_text(std::string dict, std::string_view data, int major = 1,
                            bool padded = true) {
  const std::size_t prelude = major == 1 ? 10 : 12;
  if (padded) dict.append((64 - (prelude + dict.size() + 1) % 64) % 64, ' ');
  dict += '\n';
  std::string file = "\x93NUMPY";
  file += static_cast<char>(major);
  file += '\0';
  file += little_endian(dict.size(), major == 1 ? 2 : 4);
  return file + dict + std::string(data);
}

inline std::string npy_dict(std::string_view descr, std::string_view shape,
                            bool fortran_order = false) {
  return "{'descr': '" + std::string(descr) +
         "', 'fortran_order': " + (fortran_order ? "True" : "False") +
         ", 'shape': " + std::string(shape) + ", }";
}

inline std::string npy_f32(std::string_view shape, const std::vector<float>& values) {
  return npy_text(npy_dict("<f4", shape), bytes_of(values));
}

/// A .safetensors file with any header.
inline std::string safetensors_text(std::string_view json, std::string_view data) {
  return little_endian(json.size(), 8) + std::string(json) + std::string(data);
}

inline std::shared_ptr<const files::FileBytes> as_file(std::string_view text) {
  const auto* bytes = reinterpret_cast<const std::byte*>(text.data());
  return files::FileBytes::of(std::vector<std::byte>(bytes, bytes + text.size()));
}

/// A folder of a test's own, removed at its end.
class ScratchFolder {
 public:
  ScratchFolder() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "tilewright-test-XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  std::string path(std::string_view name) const { return (path_ / name).string(); }
  /// Writes a file and returns its path.
  std::string write(std::string_view name, std::string_view bytes) const {
    std::ofstream(path(name), std::ios::binary | std::ios::trunc) << bytes;
    return path(name);
  }
  std::string read(std::string_view name) const {
    std::ifstream stream(path(name), std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(stream), {});
  }
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(path_)) {
      names.push_back(entry.path().filename().string());
    }
    return names;
  }

 private:
  std::filesystem::path path_;
};

}  // namespace tilewright::test
