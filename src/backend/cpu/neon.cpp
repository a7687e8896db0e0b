// src/backend/cpu/neon.cpp: the kernels compiled for neon.
#include "backend/cpu/target_begin.h"

#undef HWY_TARGET
#define HWY_TARGET HWY_NEON
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tilewright::cpu::neon {
#include "backend/cpu/kernels-inl.h"

const Kernels kKernels{forward_task<Float32>, merge_task, exp2_array, tanh_array, 4};
}  // namespace tilewright::cpu::neon
HWY_AFTER_NAMESPACE();
