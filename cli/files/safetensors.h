// cli/files/safetensors.h: reads and writes .safetensors files, the way bf16 travels.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "files/array.h"
#include "files/file_bytes.h"
#include "files/output_file.h"
#include "files/safetensors_header.h"

namespace tilewright::files {

/// An open file whose header has been checked as a whole. Tensors of types that Tilewright does not
/// read may lie in it; only asking for one is refused.
class SafetensorsFile {
 public:
  static Result<SafetensorsFile> open(const std::string& path);
  static Result<SafetensorsFile> open(std::string label, std::shared_ptr<const FileBytes> file);

  std::vector<std::string> names() const;
  bool contains(const std::string& name) const { return entries_.count(name) > 0; }
  /// F32, F16, BF16, F64 (rounded to f32), I32, I64 and BOOL.
  Result<Array> tensor(const std::string& name) const;

 private:
  SafetensorsFile() = default;

  std::string label_;
  std::shared_ptr<const FileBytes> file_;
  SafetensorsEntries entries_;
};

/// A C-ordered array to be written.
struct NamedArray {
  std::string name;
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;
  const void* data = nullptr;
};

/// Size of the file that write_safetensors makes.
std::int64_t safetensors_file_bytes(std::span<const NamedArray> arrays);

Status write_safetensors(OutputFile& file, std::span<const NamedArray> arrays);

}  // namespace tilewright::files
