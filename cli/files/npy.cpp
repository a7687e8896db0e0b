// cli/files/npy.cpp: reads and writes NumPy's .npy files.
#include "files/npy.h"

#include <fmt/format.h>

#include <utility>

#include "files/error_text.h"
#include "files/npy_header.h"

namespace tilewright::files {

Result<Array> read_npy(const std::string& path) {
  auto file = FileBytes::open(path);
  if (!file.ok()) return file.status();
  return read_npy(quote(path), std::move(*file));
}

Result<Array> read_npy(const std::string& label, std::shared_ptr<const FileBytes> file) {
  const std::span<const std::byte> bytes = file->bytes();
  Result<NpyHeader> header = parse_npy_header(label, bytes);
  if (!header.ok()) return header.status();
  const std::size_t have = bytes.size() - header->data_offset;
  const auto count = static_cast<std::size_t>(count_elements(header->shape).value_or(0));
  const std::size_t element = header->type.bytes();
  // Compared by division: the product may pass 64 bits.
  if (count != have / element || have % element != 0) {
    return Status{StatusCode::invalid_argument,
                  fmt::format("{}: shape is {} of {} bytes an element, and {} bytes follow the "
                              "header; accepted: exactly as many bytes as the shape needs",
                              label, shape_text(header->shape), element, have)};
  }
  return make_array(label, header->type, std::move(header->shape), header->fortran_order,
                    bytes.subspan(header->data_offset), std::move(file));
}

std::int64_t npy_file_bytes(DType dtype, std::span<const std::int64_t> shape) {
  return static_cast<std::int64_t>(npy_header_text(dtype, shape).size() +
                                   size_bytes(dtype) *
                                       static_cast<std::size_t>(count_elements(shape).value_or(0)));
}

Status write_npy(OutputFile& file, DType dtype, std::span<const std::int64_t> shape,
                 const void* data) {
  const std::string header = npy_header_text(dtype, shape);
  Status status = file.write(header.data(), header.size());
  if (!status.ok()) return status;
  return file.write(
      data, size_bytes(dtype) * static_cast<std::size_t>(count_elements(shape).value_or(0)));
}

}  // namespace tilewright::files
