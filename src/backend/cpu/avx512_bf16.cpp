// src/backend/cpu/avx512_bf16.cpp: the kernels compiled for AVX-512 with bf16 dot products.
#include "backend/cpu/target_begin.h"

#undef HWY_TARGET
#define HWY_TARGET HWY_AVX3
#include <hwy/highway.h>

HWY_PUSH_ATTRIBUTES(HWY_TARGET_STR ",avx512bf16")
namespace tilewright::cpu::avx512_bf16 {
#include "backend/cpu/kernels-inl.h"

HWY_INLINE FloatVector dot_pairs(FloatVector a, FloatVector b, FloatVector sum) {
  return FloatVector{_mm512_dpbf16_ps(sum.raw, reinterpret_cast<__m512bh>(a.raw),
                                      reinterpret_cast<__m512bh>(b.raw))};
}

HWY_INLINE void store_pairs(FloatVector p, std::uint16_t* to) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to),
                      reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(p.raw)));
}

#include "backend/cpu/bf16_arithmetic-inl.h"

const Kernels kKernels = make_kernels<Bf16>();
}  // namespace tilewright::cpu::avx512_bf16
HWY_POP_ATTRIBUTES
