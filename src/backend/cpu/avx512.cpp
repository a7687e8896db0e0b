// src/backend/cpu/avx512.cpp: the kernels compiled for avx512.
#include "backend/cpu/target_begin.h"

#undef HWY_TARGET
#define HWY_TARGET HWY_AVX3
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tilewright::cpu::avx512 {
inline constexpr Index kBlockRows = 12;
#include "backend/cpu/kernels-inl.h"

constinit const Kernels kKernels = make_kernels<Float32>();
}  // namespace tilewright::cpu::avx512
HWY_AFTER_NAMESPACE();
