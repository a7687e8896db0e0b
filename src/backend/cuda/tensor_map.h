// src/backend/cuda/tensor_map.h: describes an operand to Hopper's copy engine (TMA).
#pragma once

#include <string_view>

#include "backend/cuda/driver_api.h"
#include "plan/copy_engine.h"
#include "tilewright/status.h"

namespace tilewright::cuda {

/// What one copy brings: `rows` rows of a head or, with packed_heads, of that many heads, row by
/// row. Axes are then (dim, heads of a pack, rows, packs, batch) instead of (dim, rows, heads,
/// batch).
struct TensorMapBox {
  int columns = 0;
  int rows = 0;
  int packed_heads = 0;
};

/// The map of such boxes, columns beyond the head dim and rows beyond the operand filled with
/// zeros, swizzled by 128 bytes. copy_engine_refusal must be empty.
Result<TensorMap> encode_tensor_map(const DriverApi& api, std::string_view operand,
                                    const OperandShape& shape, const void* address,
                                    const TensorMapBox& box);

}  // namespace tilewright::cuda
