// kernels/ptx/thread.h: thread identity, shuffles, named barriers, register hand-over, grids.
#pragma once

namespace tilewright::kernels {

inline int lane_index() {
  return static_cast<int>(threadIdx.x) & 31;
}

/// Tells the compiler that a value is the same in the whole warp.
inline int warp_uniform(int value) {
  return __shfl_sync(0xffffffffu, value, 0);
}

template <typename T>
inline T shuffle_xor(T value, int mask) {
  return __shfl_xor_sync(0xffffffffu, value, mask);
}

/// The same in every lane, whatever the order of lanes.
inline float warp_max(float x) {
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) x = fmaxf(x, shuffle_xor(x, distance));
  return x;
}

inline float warp_sum(float x) {
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) x += shuffle_xor(x, distance);
  return x;
}

/// Waits until the grid that this one was launched to overlap has ended, and its stores are seen.
inline void wait_for_earlier_grid() {
  asm volatile("griddepcontrol.wait;" ::: "memory");
}

/// One lane of the warp, chosen by the hardware; the compiler knows it is one.
inline bool elect_one() {
  int elected;
  asm volatile("{ .reg .pred p; elect.sync _|p, 0xffffffff; selp.b32 %0, 1, 0, p; }"
               : "=r"(elected));
  return elected != 0;
}

/// Waits on a named barrier until `threads` threads, arrivals included, have come.
inline void named_barrier_sync(int id, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

inline void named_barrier_arrive(int id, int threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

/// Gives up, or takes, registers for the calling warpgroup.
template <int Registers>
inline void registers_decrease() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(Registers));
}

template <int Registers>
inline void registers_increase() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(Registers));
}

inline unsigned shared_address(const void* pointer) {
  return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

}  // namespace tilewright::kernels
