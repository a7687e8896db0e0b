// src/backend/cpu/neon.cpp: the kernels compiled for neon.
#include "backend/cpu/target_begin.h"

#undef HWY_TARGET
#define HWY_TARGET HWY_NEON
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tilewright::cpu::neon {
inline constexpr Index kBlockRows = 8;
#include "backend/cpu/kernels-inl.h"

constinit const Kernels kKernels = make_kernels<Float32>();
}  // namespace tilewright::cpu::neon
HWY_AFTER_NAMESPACE();
