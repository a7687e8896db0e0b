// src/backend/cpu/avx2.cpp: the kernels compiled for avx2.
#include "backend/cpu/target_begin.h"

#undef HWY_TARGET
#define HWY_TARGET HWY_AVX2
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tilewright::cpu::avx2 {
inline constexpr Index kBlockRows = 6;
#include "backend/cpu/kernels-inl.h"

constinit const Kernels kKernels = make_kernels<Float32>();
}  // namespace tilewright::cpu::avx2
HWY_AFTER_NAMESPACE();
