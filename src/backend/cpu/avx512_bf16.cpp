// src/backend/cpu/avx512_bf16.cpp: the kernels compiled for AVX-512 with bf16 dot products.
#include "backend/cpu/target_begin.h"

#undef HWY_TARGET
#define HWY_TARGET HWY_AVX3
#include <hwy/highway.h>

HWY_PUSH_ATTRIBUTES(HWY_TARGET_STR ",avx512bf16")
namespace tilewright::cpu::avx512_bf16 {
inline constexpr Index kBlockRows = 12;
#include "backend/cpu/kernels-inl.h"

#include "backend/cpu/avx512_pairs-inl.h"

#include "backend/cpu/bf16_arithmetic-inl.h"

constinit const Kernels kKernels = make_kernels<Bf16>();
}  // namespace tilewright::cpu::avx512_bf16
HWY_POP_ATTRIBUTES
