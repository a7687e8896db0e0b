// src/backend/cpu/portable.cpp: the kernels compiled for portable.
#include "backend/cpu/target_begin.h"

#undef HWY_TARGET
#define HWY_TARGET HWY_EMU128
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tilewright::cpu::portable {
inline constexpr Index kBlockRows = 6;
#include "backend/cpu/kernels-inl.h"

constinit const Kernels kKernels = make_kernels<Float32>();
}  // namespace tilewright::cpu::portable
HWY_AFTER_NAMESPACE();
