// src/backend/cuda/disk_cache.cpp: compiled kernels kept in a folder that many processes share.
#include "backend/cuda/disk_cache.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>

#include "backend/cuda/checksum.h"

namespace tilewright::cuda {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMagic = "tilewright kernel 1\n";
constexpr std::string_view kEntrySuffix = ".kernel";
constexpr std::string_view kUnfinishedSuffix = ".unfinished";

void append_number(std::string& bytes, std::uint64_t value) {
  for (int byte = 0; byte < 8; ++byte) bytes.push_back(static_cast<char>(value >> (8 * byte)));
}

bool take_number(std::string_view& bytes, std::uint64_t& value) {
  if (bytes.size() < 8) return false;
  value = 0;
  for (int byte = 7; byte >= 0; --byte)
    value = value << 8 | static_cast<unsigned char>(bytes[byte]);
  bytes.remove_prefix(8);
  return true;
}

bool take_text(std::string_view& bytes, std::string_view& text) {
  std::uint64_t size = 0;
  if (!take_number(bytes, size) || bytes.size() < size) return false;
  text = bytes.substr(0, size);
  bytes.remove_prefix(size);
  return true;
}

std::string encode(std::string_view key, std::string_view payload) {
  std::string bytes(kMagic);
  append_number(bytes, key.size());
  bytes += key;
  append_number(bytes, payload.size());
  bytes += payload;
  append_number(bytes, checksum(bytes));
  return bytes;
}

struct Decoded {
  std::string_view key;
  std::string_view payload;
};

std::optional<Decoded> decode(std::string_view bytes) {
  if (!bytes.starts_with(kMagic) || bytes.size() < kMagic.size() + 8) return std::nullopt;
  const std::uint64_t actual = checksum(bytes.substr(0, bytes.size() - 8));
  Decoded decoded;
  std::uint64_t stated = 0;
  bytes.remove_prefix(kMagic.size());
  const bool whole = take_text(bytes, decoded.key) && take_text(bytes, decoded.payload) &&
                     take_number(bytes, stated) && bytes.empty();
  if (!whole || stated != actual) return std::nullopt;
  return decoded;
}

std::optional<std::string> read_file(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream) return std::nullopt;
  return std::string(std::istreambuf_iterator<char>(stream), {});
}

bool write_file(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

Status failure(const fs::path& file, int error) {
  return {StatusCode::io_error,
          "kernel cache: cannot write " + file.string() + ": " + std::strerror(error)};
}

}  // namespace

fs::path DiskCache::file_of(std::string_view key) const {
  const std::uint64_t low = checksum(key);
  return folder_ /
         (hexadecimal(checksum(key, ~low)) + hexadecimal(low) + std::string(kEntrySuffix));
}

std::optional<std::string> DiskCache::load(std::string_view key) const {
  if (folder_.empty()) return std::nullopt;
  const fs::path file = file_of(key);
  const std::optional<std::string> bytes = read_file(file);
  if (!bytes) return std::nullopt;
  const std::optional<Decoded> decoded = decode(*bytes);
  if (!decoded) {
    std::error_code ignored;
    fs::remove(file, ignored);
    return std::nullopt;
  }
  if (decoded->key != key) return std::nullopt;
  return std::string(decoded->payload);
}

Status DiskCache::store(std::string_view key, std::string_view payload) const {
  if (folder_.empty()) return {};
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error) return failure(folder_, error.value());
  static std::atomic<unsigned> serial{0};
  const fs::path file = file_of(key);
  const fs::path unfinished = file.string() + "." + std::to_string(getpid()) + "." +
                              std::to_string(serial++) + std::string(kUnfinishedSuffix);
  const int descriptor = open(unfinished.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (descriptor < 0) return failure(unfinished, errno);
  int problem = write_file(descriptor, encode(key, payload)) ? 0 : errno;
  if (close(descriptor) != 0 && problem == 0) problem = errno;
  if (problem == 0 && rename(unfinished.c_str(), file.c_str()) != 0) problem = errno;
  if (problem == 0) return {};
  unlink(unfinished.c_str());
  return failure(file, problem);
}

std::vector<DiskCache::Entry> DiskCache::list() const {
  std::vector<Entry> entries;
  std::error_code error;
  if (folder_.empty()) return entries;
  for (const auto& item : fs::directory_iterator(folder_, error)) {
    if (!item.path().string().ends_with(kEntrySuffix)) continue;
    Entry entry{item.path(), {}, item.file_size(error)};
    if (const std::optional<std::string> bytes = read_file(item.path())) {
      if (const std::optional<Decoded> decoded = decode(*bytes)) entry.key = decoded->key;
    }
    entries.push_back(std::move(entry));
  }
  return entries;
}

Result<int> DiskCache::clear() const {
  int removed = 0;
  std::error_code error;
  if (folder_.empty() || !fs::exists(folder_, error)) return 0;
  std::vector<fs::path> files;
  for (const auto& item : fs::directory_iterator(folder_, error)) {
    const std::string name = item.path().string();
    if (name.ends_with(kEntrySuffix) || name.ends_with(kUnfinishedSuffix))
      files.push_back(item.path());
  }
  for (const fs::path& file : files) {
    if (fs::remove(file, error)) ++removed;
    if (error) return failure(file, error.value());
  }
  return removed;
}

}  // namespace tilewright::cuda
