// src/backend/cuda/tensor_map.h: describes an operand to Hopper's copy engine (TMA).
#pragma once

#include <string_view>

#include "backend/cuda/driver_api.h"
#include "plan/copy_engine.h"
#include "tilewright/status.h"

namespace tilewright::cuda {

/// The map of a tile of box_rows rows by box_columns columns, columns beyond the head dim and rows
/// beyond the operand filled with zeros, swizzled by 128 bytes. copy_engine_refusal must be empty.
Result<TensorMap> encode_tensor_map(const DriverApi& api, std::string_view operand,
                                    const OperandShape& shape, const void* address, int box_columns,
                                    int box_rows);

}  // namespace tilewright::cuda
