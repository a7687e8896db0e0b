// src/backend/cuda/tensor_map.cpp: describes an operand to Hopper's copy engine (TMA).
#include "backend/cuda/tensor_map.h"

#include <fmt/format.h>

#include <algorithm>

#include "backend/cuda/driver.h"

namespace tilewright::cuda {
Result<TensorMap> encode_tensor_map(const DriverApi& api, std::string_view operand,
                                    const OperandShape& shape, const void* address,
                                    const TensorMapBox& box) {
  const auto element = static_cast<std::int64_t>(size_bytes(shape.dtype));
  std::uint32_t rank = 0;
  std::uint64_t extents[5];
  std::uint64_t strides_bytes[5];
  std::uint32_t sides[5];
  const auto add = [&](std::int64_t extent, std::int64_t stride, int side) {
    const std::int64_t bytes = extent > 1 ? stride * element : kCopyEngineAlignment;
    extents[rank] = static_cast<std::uint64_t>(std::max<std::int64_t>(extent, 1));
    strides_bytes[rank] = static_cast<std::uint64_t>(bytes);
    sides[rank++] = static_cast<std::uint32_t>(side);
  };
  const std::int64_t pack = std::max(box.packed_heads, 1);
  add(shape.dim, 1, box.columns);
  if (box.packed_heads > 0) add(pack, shape.strides.head, box.packed_heads);
  add(shape.rows, shape.strides.token, box.rows);
  add(shape.heads / pack, shape.strides.head * pack, 1);
  add(shape.batch, shape.strides.batch, 1);
  const std::uint32_t steps[5] = {1, 1, 1, 1, 1};
  TensorMap map{};
  Status status =
      check(api,
            api.tensor_map_encode_tiled(
                &map, shape.dtype == DType::bf16 ? TensorMapDataType::bf16 : TensorMapDataType::f16,
                rank, const_cast<void*>(address), extents, strides_bytes + 1, sides, steps,
                TensorMapInterleave::none, TensorMapSwizzle::bytes_128,
                TensorMapPromotion::l2_128_bytes, TensorMapFill::zeros),
            fmt::format("describing {} at {} to the copy engine", operand, address));
  if (!status.ok()) return status;
  return map;
}

}  // namespace tilewright::cuda
