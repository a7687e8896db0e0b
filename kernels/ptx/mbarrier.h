// kernels/ptx/mbarrier.h: barriers in shared memory that count arrivals and asynchronously copied
// bytes.
//
// A phase ends when all arrivals and all expected bytes have come; its parity is 0, 1, 0, ...
// Waiting for parity 1 on a fresh barrier returns at once.
#pragma once

namespace tilewright::kernels {

inline void barrier_init(unsigned address, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(address), "r"(arrivals) : "memory");
}

inline void barrier_arrive(unsigned address) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(address) : "memory");
}

/// Arrives, and adds bytes that the copy engine must deliver before the phase ends.
inline void barrier_arrive_expect(unsigned address, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address), "r"(bytes)
               : "memory");
}

inline bool barrier_try_wait(unsigned address, int parity) {
  int done;
  asm volatile(
      "{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.b32 %0, 1, 0, p; "
      "}"
      : "=r"(done)
      : "r"(address), "r"(parity)
      : "memory");
  return done != 0;
}

inline void barrier_wait(unsigned address, int parity) {
  while (!barrier_try_wait(address, parity)) {
  }
}

}  // namespace tilewright::kernels
