// cli/output.cpp: writes O and LSE to files, all or nothing.
#include "output.h"

#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "files/npy.h"
#include "text.h"

namespace tilewright::cli {

Result<Outputs> Outputs::create(const std::string& o_path, const std::string& lse_path,
                                const files::NamedArray& o, const files::NamedArray& lse) {
  std::error_code error;
  if (o_path == lse_path || (std::filesystem::equivalent(o_path, lse_path, error) &&
                             std::filesystem::is_regular_file(o_path, error))) {
    return Status{StatusCode::invalid_argument,
                  fmt::format("--lse is {}, the file of --out; accepted: another file (a "
                              ".safetensors --out holds lse too)",
                              quote(lse_path))};
  }
  for (const auto& [flag, path] : {std::pair{"--out", o_path}, std::pair{"--lse", lse_path}}) {
    const std::string extension = std::filesystem::path(path).extension().string();
    // Without an extension it may be a pipe or a device.
    if (extension.empty() || extension == ".npy" || extension == ".safetensors") continue;
    return Status{StatusCode::invalid_argument,
                  fmt::format("{} is {}; accepted: a path that ends in .npy or .safetensors, or "
                              "has no extension (.npy)",
                              flag, quote(path))};
  }
  Outputs outputs;
  Status status = outputs.add("--out", o_path, {o, lse});
  if (status.ok() && !lse_path.empty()) status = outputs.add("--lse", lse_path, {lse});
  if (!status.ok()) return status;
  return outputs;
}

Status Outputs::add(const std::string& flag, const std::string& path,
                    std::vector<files::NamedArray> arrays) {
  const bool safetensors = path.ends_with(".safetensors");
  if (!safetensors) arrays.resize(1);
  const std::int64_t bytes = safetensors ? files::safetensors_file_bytes(arrays)
                                         : files::npy_file_bytes(arrays[0].dtype, arrays[0].shape);
  Result<files::OutputFile> file = files::OutputFile::create(path, bytes);
  if (!file.ok()) {
    return {file.status().code(), fmt::format("{}: {}", flag, file.status().message())};
  }
  targets_.push_back({std::move(*file), std::move(arrays), safetensors});
  return {};
}

Status Outputs::write(const void* o, const void* lse) {
  for (Target& target : targets_) {
    for (files::NamedArray& array : target.arrays) array.data = array.name == "o" ? o : lse;
    const files::NamedArray& first = target.arrays.front();
    Status status = target.safetensors
                        ? files::write_safetensors(target.file, target.arrays)
                        : files::write_npy(target.file, first.dtype, first.shape, first.data);
    if (!status.ok()) return status;
  }
  for (Target& target : targets_) {
    Status status = target.file.commit();
    if (!status.ok()) return status;
  }
  return {};
}

}  // namespace tilewright::cli
