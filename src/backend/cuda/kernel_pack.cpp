// src/backend/cuda/kernel_pack.cpp: the file of compiled kernels that is shipped with the library.
//
// Layout: a magic line; two 16-digit hexadecimal numbers, the index's size and checksum, each with
// a newline; the index in JSON; the machine code, at offsets counted from the index's end.
#include "backend/cuda/kernel_pack.h"

#include <fmt/format.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "backend/cuda/checksum.h"
#include "backend/cuda/compiler.h"

namespace tilewright::cuda {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::string_view kMagic = "tilewright pack 1\n";
// NOLINTNEXTLINE(bugprone-implicit-widening-of-multiplication-result)
constexpr std::size_t kPreambleBytes = kMagic.size() + 2 * 17;

Status damaged(const fs::path& file, std::string_view what) {
  return {StatusCode::io_error, fmt::format("kernel pack {}: {}", file.string(), what)};
}

std::optional<std::string> read_at(const fs::path& file, std::uint64_t offset, std::uint64_t size) {
  std::ifstream stream(file, std::ios::binary);
  std::string bytes(size, '\0');
  if (!stream.seekg(static_cast<std::streamoff>(offset))) return std::nullopt;
  if (!stream.read(bytes.data(), static_cast<std::streamsize>(size))) return std::nullopt;
  return bytes;
}

}  // namespace

Result<KernelPack> KernelPack::open(const fs::path& file) {
  std::error_code error;
  const std::uint64_t file_bytes = fs::file_size(file, error);
  if (error) return damaged(file, error.message());
  const std::optional<std::string> preamble =
      read_at(file, 0, std::min<std::uint64_t>(file_bytes, kPreambleBytes));
  if (!preamble || preamble->size() < kPreambleBytes || !preamble->starts_with(kMagic) ||
      (*preamble)[kMagic.size() + 16] != '\n' || (*preamble)[kMagic.size() + 33] != '\n') {
    return damaged(file, "not a kernel pack of this version");
  }
  const std::uint64_t index_bytes = std::strtoull(preamble->c_str() + kMagic.size(), nullptr, 16);
  const std::uint64_t index_checksum =
      std::strtoull(preamble->c_str() + kMagic.size() + 17, nullptr, 16);
  if (index_bytes > file_bytes - kPreambleBytes) return damaged(file, "truncated");
  const std::optional<std::string> text = read_at(file, kPreambleBytes, index_bytes);
  if (!text || checksum(*text) != index_checksum) return damaged(file, "damaged index");
  const Json index = Json::parse(*text, nullptr, false);
  if (index.is_discarded()) return damaged(file, "damaged index");

  KernelPack pack;
  pack.file_ = file;
  pack.header_ = {index.value("source_digest", ""), index.value("architecture", ""),
                  index.value("compiler_version", "")};
  for (const Json& item : index.value("kernels", Json::array())) {
    Entry entry;
    entry.offset = kPreambleBytes + index_bytes + item.value("offset", std::uint64_t{0});
    entry.size_bytes = item.value("size_bytes", std::uint64_t{0});
    entry.checksum = item.value("checksum", std::uint64_t{0});
    entry.facts.register_count = item.value("register_count", 0);
    entry.facts.stack_bytes = item.value("stack_bytes", 0);
    entry.facts.static_shared_bytes = item.value("static_shared_bytes", 0);
    entry.facts.code_bytes = item.value("code_bytes", std::size_t{0});
    pack.entries_.emplace(item.value("key", ""), entry);
  }
  return pack;
}

Result<KernelPack> KernelPack::find(const std::vector<fs::path>& candidates,
                                    std::string_view source_digest) {
  std::string tried;
  std::error_code error;
  for (const fs::path& file : candidates) {
    if (!fs::exists(file, error)) {
      tried += (tried.empty() ? "" : ", ") + file.string();
      continue;
    }
    Result<KernelPack> pack = open(file);
    if (!pack) return pack;
    const PackHeader& header = pack->header();
    if (header.source_digest != source_digest || header.architecture != kArchitecture) {
      return Status{StatusCode::unavailable,
                    fmt::format("kernel pack {} is for {} and sources {}; this library needs {} "
                                "and sources {}",
                                file.string(), header.architecture, header.source_digest,
                                kArchitecture, source_digest)};
    }
    return pack;
  }
  return Status{StatusCode::unavailable, fmt::format("no kernel pack at {}", tried)};
}

Result<std::optional<std::string>> KernelPack::load(const std::string& key) const {
  const auto found = entries_.find(key);
  if (found == entries_.end()) return std::optional<std::string>();
  std::error_code error;
  const Entry& entry = found->second;
  const std::uint64_t file_bytes = fs::file_size(file_, error);
  if (error || entry.size_bytes > file_bytes || entry.offset > file_bytes - entry.size_bytes) {
    return damaged(file_, "truncated");
  }
  std::optional<std::string> cubin = read_at(file_, entry.offset, entry.size_bytes);
  if (!cubin || checksum(*cubin) != entry.checksum) return damaged(file_, "damaged kernel " + key);
  return cubin;
}

Result<std::uint64_t> write_pack(const fs::path& file, const PackHeader& header,
                                 const std::vector<PackedKernel>& kernels) {
  Json index{{"source_digest", header.source_digest},
             {"architecture", header.architecture},
             {"compiler_version", header.compiler_version},
             {"kernels", Json::array()}};
  std::uint64_t offset = 0;
  for (const PackedKernel& kernel : kernels) {
    index["kernels"].push_back({{"key", kernel.key},
                                {"offset", offset},
                                {"size_bytes", kernel.cubin.size()},
                                {"checksum", checksum(kernel.cubin)},
                                {"register_count", kernel.facts.register_count},
                                {"stack_bytes", kernel.facts.stack_bytes},
                                {"static_shared_bytes", kernel.facts.static_shared_bytes},
                                {"code_bytes", kernel.facts.code_bytes}});
    offset += kernel.cubin.size();
  }
  const std::string text = index.dump(1);
  const fs::path unfinished = file.string() + ".unfinished";
  {
    std::ofstream stream(unfinished, std::ios::binary | std::ios::trunc);
    stream << kMagic << hexadecimal(text.size()) << '\n'
           << hexadecimal(checksum(text)) << '\n'
           << text;
    for (const PackedKernel& kernel : kernels) stream << kernel.cubin;
    if (!stream.flush()) return damaged(unfinished, "cannot be written");
  }
  std::error_code error;
  fs::rename(unfinished, file, error);
  if (error) return damaged(file, error.message());
  return kPreambleBytes + text.size() + offset;
}

}  // namespace tilewright::cuda
