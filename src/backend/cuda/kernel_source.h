// src/backend/cuda/kernel_source.h: one kernel to compile, and the device sources that the library
// carries.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace tilewright::cuda {

/// One kernel: an embedded source file, the generated header that specialises it, and what
/// launching it needs.
struct KernelSource {
  std::string name;            ///< Printable and unique: family and specialisation.
  std::string entry;           ///< The file's extern "C" kernel.
  std::string file;            ///< Embedded file, such as "kernels/attention/hopper_forward.cu".
  std::string generated_name;  ///< Header that the file includes; empty if none.
  std::string generated_text;
  int dynamic_shared_bytes = 0;
  int threads = 0;
  int planned_registers = 0;  ///< a thread, at the kernel's start; 0: whatever the compiler needs

  int planned_matrix_instructions = 0;  ///< at least so many, if its products are on matrix units

  /// What identifies the compiled code, given the sources: the name, and a checksum of the rest.
  std::string key() const;
};

/// A device source file, by the name that programs include.
struct EmbeddedFile {
  std::string_view name;
  std::string_view text;
};

/// Every file of kernels/ and those of src/schedule/ that they include, as they were when the
/// library was built.
std::span<const EmbeddedFile> embedded_files();

/// SHA-256 over the embedded files, computed by the build.
std::string_view embedded_digest();

}  // namespace tilewright::cuda
