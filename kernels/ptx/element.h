// kernels/ptx/element.h: the 16-bit element types, as PTX names them.
#pragma once

namespace tilewright::kernels {

struct Bf16 {
  static constexpr char kName[] = "bf16";
};

struct F16 {
  static constexpr char kName[] = "f16";
};

}  // namespace tilewright::kernels
