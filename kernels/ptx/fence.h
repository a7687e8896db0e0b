// kernels/ptx/fence.h: orderings: between proxies, and of registers around asynchronous
// instructions.
#pragma once

namespace tilewright::kernels {

/// Makes this thread's ordinary shared-memory accesses visible to wgmma and the copy engine.
inline void fence_async_proxy() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/// Makes mbarrier initialisation visible to the copy engine.
inline void fence_barrier_init() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

/// Pins registers here: the compiler moves no read or write of them across. Emits nothing. Needed
/// after a wait, since the compiler does not know that an earlier wgmma still used them.
template <int N>
inline void fence_registers(float (&r)[N]) {
#pragma unroll
  for (int i = 0; i < N; ++i) asm volatile("" : "+f"(r[i])::"memory");
}

template <int N, int M>
inline void fence_registers(unsigned (&r)[N][M]) {
#pragma unroll
  for (int i = 0; i < N; ++i) {
#pragma unroll
    for (int j = 0; j < M; ++j) asm volatile("" : "+r"(r[i][j])::"memory");
  }
}

/// Makes the assembler compute `value` before a wait that follows: it likes to move a wait up, past
/// arithmetic that was meant to run under it, and only a store that needs the value holds it back.
/// `unused` is four bytes of shared memory that nothing reads; they are written only if the value
/// is infinite.
inline void compute_before(float value, unsigned unused) {
  asm volatile(
      "{ .reg .pred p; setp.eq.f32 p, %0, 0f7f800000; @p st.shared.f32 [%1], %0; }" ::"f"(value),
      "r"(unused)
      : "memory");
}

/// `value`, for which the assembler waits until `other` >= 0 is known too. fminf makes 1 of a NaN,
/// which must not spread.
inline float compute_after(float value, float other) {
  return __fmaf_rn(fminf(other, 1.0f), 0.0f, value);
}

}  // namespace tilewright::kernels
