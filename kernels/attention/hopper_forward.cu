// kernels/attention/hopper_forward.cu: exact attention forward for sm_90a, one source for every
// specialisation.
//
//   S = scale Q K^T, softcapped, less ALiBi, masked
//   LSE = log(sum of exp(S), and of exp(sink)), O = exp(S - LSE) V
// and O = 0, LSE = -infinity (or the sink) in a row that sees no key. By the online softmax of
// FlashAttention-2 (Dao, 2023), with a producer and consumers as in FlashAttention-3 (Shah et al.,
// 2024).
//
// A persistent block takes query tiles until there are none. Its first warpgroup, the producer,
// schedules and keeps rings of K and V tiles full (and Q); each other warpgroup, a consumer, owns
// 64 query rows of every tile. How to compile and launch: hopper_forward_params.h.
//
// Budgets, for tiles of M queries x N keys and head dims D (Q, K) and E (V):
//   shared memory: 2 (M D + stages N (D + E)) + 1024 bytes, D and E rounded up to 64, of the 227 KB
//     that a block may have; 209 KB at 128 x 176, D = E = 128 (schedule::footprint)
//   registers: N/2 for S, N/4 for P and E/2 for O in each consumer thread, 196 at that tile, of 232
//     (160 with three consumers) after the producer gave some up; see accumulator_register_limit
#include "kernels/attention/hopper_forward_block.h"
#include "kernels/attention/hopper_forward_consumer.h"
#include "kernels/attention/hopper_forward_params.h"
#include "kernels/attention/hopper_forward_producer.h"
#include "kernels/ptx/fence.h"
#include "kernels/ptx/thread.h"
#include "kernels/ptx/tma.h"
#include "schedule/hopper_forward.h"

namespace tilewright::kernels {

extern "C" __global__ void __launch_bounds__(schedule::threads(kSpec), 1)
    hopper_forward(const __grid_constant__ HopperForwardParams params) {
  extern __shared__ __align__(1024) char shared_memory[];
  const Shared shared(shared_memory);
  const int warp = warp_uniform(static_cast<int>(threadIdx.x) / 32);
  if (warp == 0 && lane_index() == 0) {
    if constexpr (!kSpec.copy_producer) {
      tma_prefetch(&params.q_map);
      tma_prefetch(&params.k_map);
      tma_prefetch(&params.v_map);
    }
    shared.init_barriers();
    fence_barrier_init();
  }
  __syncthreads();
  if (warp < 4) {
    registers_decrease<schedule::producer_register_limit(kSpec)>();
    if (warp == 0) {
      schedule_work(params, shared);
    } else if (warp <= kLoadWarps) {
      load_work(params, shared);
    }
  } else {
    registers_increase<schedule::consumer_register_limit(kSpec)>();
    Consumer(params, shared, warp / 4 - 1).run();
  }
}

}  // namespace tilewright::kernels
