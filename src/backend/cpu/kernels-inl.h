// src/backend/cpu/kernels-inl.h: all of one instruction set's fp32 kernels: included in its
// namespace.
#include "backend/cpu/vector_math-inl.h"

#include "backend/cpu/pack-inl.h"

#include "backend/cpu/product-inl.h"

#include "backend/cpu/arithmetic-inl.h"

#include "backend/cpu/softmax-inl.h"

#include "backend/cpu/operands-inl.h"

#include "backend/cpu/stream-inl.h"

#include "backend/cpu/forward-inl.h"

#include "backend/cpu/standard-inl.h"

inline void exp2_array(const float* from, float* to, Index count) {
  const FloatTag d;
  for (Index i = 0; i < count; i += kLanes) {
    hn::StoreU(exp2_vector(hn::LoadU(d, from + i)), d, to + i);
  }
}

inline void tanh_array(const float* from, float* to, Index count) {
  const FloatTag d;
  for (Index i = 0; i < count; i += kLanes) {
    hn::StoreU(tanh_vector(hn::LoadU(d, from + i)), d, to + i);
  }
}

template <class Arithmetic>
constexpr Kernels make_kernels() {
  return {forward_task<Arithmetic>,
          merge_task,
          standard_scores<Arithmetic>,
          standard_softmax<Arithmetic>,
          standard_output<Arithmetic>,
          exp2_array,
          tanh_array,
          4 / Arithmetic::kElements};
}
