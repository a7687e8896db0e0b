// src/backend/cpu/avx512_pairs-inl.h: AVX512-BF16's instructions, for bf16_arithmetic-inl.h.
//
// Inline code of one instruction set: included inside its namespace.

HWY_INLINE FloatVector dot_pairs(FloatVector a, FloatVector b, FloatVector sum) {
  return FloatVector{_mm512_dpbf16_ps(sum.raw, reinterpret_cast<__m512bh>(a.raw),
                                      reinterpret_cast<__m512bh>(b.raw))};
}

HWY_INLINE void store_pairs(FloatVector p, std::uint16_t* to) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to),
                      reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(p.raw)));
}
