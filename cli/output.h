// cli/output.h: writes O and LSE to .npy or .safetensors files, all or nothing.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "files/output_file.h"
#include "files/safetensors.h"
#include "tilewright/status.h"

namespace tilewright::cli {

/// Opens its files before the work, writes them after it. A path ending in .safetensors gets every
/// array given; any other is .npy and gets its own.
class Outputs {
 public:
  /// lse_path may be empty. o and lse have no data yet.
  static Result<Outputs> create(const std::string& o_path, const std::string& lse_path,
                                const files::NamedArray& o, const files::NamedArray& lse);
  Status write(const void* o, const void* lse);

 private:
  struct Target {
    files::OutputFile file;
    std::vector<files::NamedArray> arrays;
    bool safetensors = false;
  };
  Status add(const std::string& flag, const std::string& path,
             std::vector<files::NamedArray> arrays);

  std::vector<Target> targets_;
};

}  // namespace tilewright::cli
