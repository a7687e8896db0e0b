// kernels/ptx/tma.h: the tensor copy engine: boxes of a strided tensor to shared memory.
#pragma once

namespace tilewright::kernels {

/// How long the copied lines should stay in L2.
inline unsigned long long l2_evict_first() {
  unsigned long long policy;
  asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}

inline unsigned long long l2_evict_last() {
  unsigned long long policy;
  asm("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}

inline void tma_prefetch(const void* map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

/// Copies the box at (column, row, head, batch); its bytes, zero-filled ones included, count
/// towards the barrier's phase.
inline void tma_load(unsigned destination, const void* map, unsigned barrier, int column, int row,
                     int head, int batch, unsigned long long policy) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint "
      "[%0], [%1, {%3, %4, %5, %6}], [%2], %7;" ::"r"(destination),
      "l"(map), "r"(barrier), "r"(column), "r"(row), "r"(head), "r"(batch), "l"(policy)
      : "memory");
}

/// The same with one more axis behind the columns, which the box spans from its beginning.
inline void tma_load_whole_axis(unsigned destination, const void* map, unsigned barrier, int column,
                                int row, int head, int batch, unsigned long long policy) {
  asm volatile(
      "cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint "
      "[%0], [%1, {%3, 0, %4, %5, %6}], [%2], %7;" ::"r"(destination),
      "l"(map), "r"(barrier), "r"(column), "r"(row), "r"(head), "r"(batch), "l"(policy)
      : "memory");
}

}  // namespace tilewright::kernels
