// src/backend/cpu/amx_bf16.cpp: the kernels compiled for AMX's bf16 tiles, with AVX-512 beside
// them.
#include "backend/cpu/target_begin.h"

#undef HWY_TARGET
#define HWY_TARGET HWY_AVX3
#include <hwy/highway.h>

HWY_PUSH_ATTRIBUTES(HWY_TARGET_STR ",avx512bf16,amx-tile,amx-bf16")
namespace tilewright::cpu::amx_bf16 {
// Two row tiles.
inline constexpr Index kBlockRows = 32;
#include "backend/cpu/kernels-inl.h"

#include "backend/cpu/avx512_pairs-inl.h"

#include "backend/cpu/bf16_arithmetic-inl.h"

#include "backend/cpu/tile_arithmetic-inl.h"

/// Layout of LDTILECFG's operand.
struct alignas(64) TileConfig {
  std::uint8_t palette = 1;
  std::uint8_t start_row = 0;
  std::uint8_t reserved[14] = {};
  std::uint16_t row_bytes[16] = {};
  std::uint8_t rows[16] = {};
};

// The compilers' intrinsics take a tile's number as a literal only, so these are written out.
struct AmxTiles {
  static HWY_INLINE void configure(Index upper, Index lower) {
    // Loading a configuration is slow, so each thread keeps its own until the rows change. A task
    // begins and ends without one.
    if (configured_rows == upper + lower) return;
    configured_rows = upper + lower;
    TileConfig config;
    const auto shape = [&](int tile, Index rows) {
      config.rows[tile] = static_cast<std::uint8_t>(rows == 0 ? 1 : rows);
      config.row_bytes[tile] = 64;
    };
    for (const int tile : {0, 1, 4}) shape(tile, upper);
    for (const int tile : {2, 3, 5}) shape(tile, lower);
    for (const int tile : {6, 7}) shape(tile, 16);
    _tile_loadconfig(&config);
  }
  template <int kTile>
  static HWY_INLINE void zero() {
    asm volatile("tilezero %%tmm%c0" ::"i"(kTile));
  }
  template <int kTile>
  static HWY_INLINE void load(const float* from, Index stride) {
    asm volatile("tileloadd (%1,%2,1), %%tmm%c0" ::"i"(kTile), "r"(from), "r"(stride * 4)
                 : "memory");
  }
  template <int kTile>
  static HWY_INLINE void store(float* to, Index stride) {
    asm volatile("tilestored %%tmm%c0, (%1,%2,1)" ::"i"(kTile), "r"(to), "r"(stride * 4)
                 : "memory");
  }
  template <int kSum, int kLeft, int kRight>
  static HWY_INLINE void dot() {
    asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kSum), "i"(kLeft), "i"(kRight));
  }
  static void release() {
    if (configured_rows != 0) _tile_release();
    configured_rows = 0;
  }
  static thread_local Index configured_rows;
};
thread_local Index AmxTiles::configured_rows = 0;

/// A kernel that leaves the thread without tiles in use.
template <void (*kKernel)(const ForwardCall&, const ForwardTask&, std::byte*)>
void with_tiles(const ForwardCall& call, const ForwardTask& task, std::byte* scratch) {
  kKernel(call, task, scratch);
  AmxTiles::release();
}

constexpr Kernels make_tile_kernels() {
  using Arithmetic = TileBf16<AmxTiles>;
  Kernels kernels = make_kernels<Arithmetic>();
  kernels.forward = with_tiles<forward_task<Arithmetic>>;
  kernels.scores = with_tiles<standard_scores<Arithmetic>>;
  kernels.output = with_tiles<standard_output<Arithmetic>>;
  return kernels;
}

constinit const Kernels kKernels = make_tile_kernels();
}  // namespace tilewright::cpu::amx_bf16
HWY_POP_ATTRIBUTES
