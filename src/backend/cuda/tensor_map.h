// src/backend/cuda/tensor_map.h: describes an operand to Hopper's copy engine (TMA), where it can
// be described.
#pragma once

#include <cstdint>
#include <string>

#include "backend/cuda/driver_api.h"
#include "tilewright/dtype.h"
#include "tilewright/status.h"
#include "tilewright/tensor.h"

namespace tilewright::cuda {

/// An operand as the copy engine sees it: [batch, heads, rows, dim] by extents and strides.
struct OperandShape {
  DType dtype = DType::bf16;
  std::int64_t batch = 0;  ///< 1 when packed
  std::int64_t rows = 0;
  std::int64_t heads = 0;
  std::int64_t dim = 0;
  Strides strides;
  std::int64_t alignment_bytes = 0;  ///< promised of the address
};

/// Empty when the copy engine can read the operand; else the reason why it cannot, naming
/// `operand`.
std::string copy_engine_refusal(std::string_view operand, const OperandShape& shape);

/// The map of a tile of box_rows rows by box_columns columns, columns beyond `dim` and rows beyond
/// `rows` filled with zeros, swizzled by 128 bytes. The operand must not be refused.
Result<TensorMap> encode_tensor_map(const DriverApi& api, std::string_view operand,
                                    const OperandShape& shape, const void* address, int box_columns,
                                    int box_rows);

}  // namespace tilewright::cuda
