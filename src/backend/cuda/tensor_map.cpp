// src/backend/cuda/tensor_map.cpp: describes an operand to Hopper's copy engine (TMA).
#include "backend/cuda/tensor_map.h"

#include <fmt/format.h>

#include <algorithm>

#include "backend/cuda/driver.h"

namespace tilewright::cuda {
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
  const std::array<OuterAxis, 3> axes = outer_axes(shape);
  for (std::size_t axis = 0; axis < axes.size(); ++axis) {
    const std::int64_t bytes =
        axes[axis].extent > 1 ? axes[axis].stride * element : kCopyEngineAlignment;
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
