// src/backend/cuda/tensor_map.cpp: describes an operand to Hopper's copy engine (TMA), where it can
// be described.
#include "backend/cuda/tensor_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "backend/cuda/driver.h"

namespace tilewright::cuda {
namespace {

// Limits of cuTensorMapEncodeTiled.
constexpr std::int64_t kAddressAlignment = 16;
constexpr std::int64_t kStrideAlignment = 16;
constexpr std::int64_t kStrideLimitBytes = std::int64_t{1} << 40;
// Extents may reach 2^32, but kernels address tiles with signed 32-bit coordinates.
constexpr std::int64_t kExtentLimit = std::int64_t{1} << 31;

struct Axis {
  const char* name;
  std::int64_t extent;
  std::int64_t stride;
};

std::array<Axis, 3> outer_axes(const OperandShape& shape) {
  return {Axis{"token", shape.rows, shape.strides.token},
          Axis{"head", shape.heads, shape.strides.head},
          Axis{"batch", shape.batch, shape.strides.batch}};
}

}  // namespace

std::string copy_engine_refusal(std::string_view operand, const OperandShape& shape) {
  const auto element = static_cast<std::int64_t>(size_bytes(shape.dtype));
  if (shape.alignment_bytes < kAddressAlignment) {
    return fmt::format("{}.alignment_bytes is {}; TMA needs {}", operand, shape.alignment_bytes,
                       kAddressAlignment);
  }
  if (shape.dim > 1 && shape.strides.dim != 1) {
    return fmt::format("{}.strides.dim is {}; TMA needs 1", operand, shape.strides.dim);
  }
  for (const Axis& axis : outer_axes(shape)) {
    if (axis.extent >= kExtentLimit) {
      return fmt::format("{} has {} along {}; TMA needs less than 2^31", operand, axis.extent,
                         axis.name);
    }
    if (axis.extent <= 1) continue;  // The stride is never used.
    // Bounded first, so that the product below cannot overflow.
    if (axis.stride <= 0 || axis.stride >= kStrideLimitBytes ||
        axis.stride * element % kStrideAlignment != 0 ||
        axis.stride * element >= kStrideLimitBytes) {
      return fmt::format(
          "{}.strides.{} is {}; TMA needs a positive multiple of {}, below 2^40 bytes", operand,
          axis.name, axis.stride, kStrideAlignment / element);
    }
  }
  return {};
}

Result<TensorMap> encode_tensor_map(const DriverApi& api, std::string_view operand,
                                    const OperandShape& shape, const void* address, int box_columns,
                                    int box_rows) {
  const auto element = static_cast<std::int64_t>(size_bytes(shape.dtype));
  const std::uint64_t extents[4] = {
      static_cast<std::uint64_t>(std::max<std::int64_t>(shape.dim, 1)),
      static_cast<std::uint64_t>(std::max<std::int64_t>(shape.rows, 1)),
      static_cast<std::uint64_t>(std::max<std::int64_t>(shape.heads, 1)),
      static_cast<std::uint64_t>(std::max<std::int64_t>(shape.batch, 1))};
  std::uint64_t strides_bytes[3];
  const std::array<Axis, 3> axes = outer_axes(shape);
  for (std::size_t axis = 0; axis < axes.size(); ++axis) {
    const std::int64_t bytes =
        axes[axis].extent > 1 ? axes[axis].stride * element : kStrideAlignment;
    strides_bytes[axis] = static_cast<std::uint64_t>(bytes);
  }
  const std::uint32_t box[4] = {static_cast<std::uint32_t>(box_columns),
                                static_cast<std::uint32_t>(box_rows), 1, 1};
  const std::uint32_t steps[4] = {1, 1, 1, 1};
  TensorMap map{};
  Status status = check(
      api,
      api.tensor_map_encode_tiled(
          &map, shape.dtype == DType::bf16 ? TensorMapDataType::bf16 : TensorMapDataType::f16, 4,
          const_cast<void*>(address), extents, strides_bytes, box, steps, TensorMapInterleave::none,
          TensorMapSwizzle::bytes_128, TensorMapPromotion::l2_256_bytes, TensorMapFill::zeros),
      fmt::format("describing {} at {} to the copy engine", operand, address));
  if (!status.ok()) return status;
  return map;
}

}  // namespace tilewright::cuda
