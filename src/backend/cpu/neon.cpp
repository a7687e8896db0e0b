// src/backend/cpu/neon.cpp: the kernels compiled for neon.
#include "backend/cpu/target_begin.h"

#undef HWY_TARGET
#define HWY_TARGET HWY_NEON
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tilewright::cpu::neon {
#include "backend/cpu/kernels-inl.h"

const Kernels kKernels = make_kernels<Float32>();
}  // namespace tilewright::cpu::neon
HWY_AFTER_NAMESPACE();
