// kernels/ptx/wgmma.h: warpgroup matrix products, D += A B with fp32 accumulators in registers.
//
// 128 threads compute D[64, N]. Warp w, lane l holds, of each group j of 8 columns, the elements
//   d[4j], d[4j+1]   at row 16w + l/4,     columns 8j + 2(l % 4) + {0, 1}
//   d[4j+2], d[4j+3] at row 16w + l/4 + 8, the same columns.
// Four of them, converted in pairs, are an A operand of the next product: no shuffles (fragment.h).
// The macros only spell out the register lists of PTX; they are undefined again at the end.
#pragma once

namespace tilewright::kernels {

/// Orders earlier register and shared-memory accesses before the wgmmas that follow.
inline void wgmma_fence() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

/// Closes the group of wgmmas issued since the last commit.
inline void wgmma_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

/// Waits until at most `Pending` groups are in flight. Then fence the registers they used
/// (fence.h).
template <int Pending>
inline void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Pending) : "memory");
}

/// Products of one N: `shared` reads A and B from shared memory, `registers` reads A from
/// registers. B is K-major, or MN-major if kTransposeB. accumulate: false means D = A B.
template <int N>
struct Wgmma;

// clang-format off
#define TW_LIST_8 "%0, %1, %2, %3, %4, %5, %6, %7"
#define TW_LIST_16 TW_LIST_8 ", %8, %9, %10, %11, %12, %13, %14, %15"
#define TW_LIST_24 TW_LIST_16 ", %16, %17, %18, %19, %20, %21, %22, %23"
#define TW_LIST_32 TW_LIST_24 ", %24, %25, %26, %27, %28, %29, %30, %31"
#define TW_LIST_40 TW_LIST_32 ", %32, %33, %34, %35, %36, %37, %38, %39"
#define TW_LIST_48 TW_LIST_40 ", %40, %41, %42, %43, %44, %45, %46, %47"
#define TW_LIST_56 TW_LIST_48 ", %48, %49, %50, %51, %52, %53, %54, %55"
#define TW_LIST_64 TW_LIST_56 ", %56, %57, %58, %59, %60, %61, %62, %63"
#define TW_LIST_72 TW_LIST_64 ", %64, %65, %66, %67, %68, %69, %70, %71"
#define TW_LIST_80 TW_LIST_72 ", %72, %73, %74, %75, %76, %77, %78, %79"
#define TW_LIST_88 TW_LIST_80 ", %80, %81, %82, %83, %84, %85, %86, %87"
#define TW_LIST_96 TW_LIST_88 ", %88, %89, %90, %91, %92, %93, %94, %95"
#define TW_LIST_104 TW_LIST_96 ", %96, %97, %98, %99, %100, %101, %102, %103"
#define TW_LIST_112 TW_LIST_104 ", %104, %105, %106, %107, %108, %109, %110, %111"
#define TW_LIST_120 TW_LIST_112 ", %112, %113, %114, %115, %116, %117, %118, %119"
#define TW_LIST_128 TW_LIST_120 ", %120, %121, %122, %123, %124, %125, %126, %127"
#define TW_EIGHT(b) "+f"(d[b]), "+f"(d[b + 1]), "+f"(d[b + 2]), "+f"(d[b + 3]), \
  "+f"(d[b + 4]), "+f"(d[b + 5]), "+f"(d[b + 6]), "+f"(d[b + 7])
#define TW_BIND_8 TW_EIGHT(0)
#define TW_BIND_16 TW_BIND_8, TW_EIGHT(8)
#define TW_BIND_24 TW_BIND_16, TW_EIGHT(16)
#define TW_BIND_32 TW_BIND_24, TW_EIGHT(24)
#define TW_BIND_40 TW_BIND_32, TW_EIGHT(32)
#define TW_BIND_48 TW_BIND_40, TW_EIGHT(40)
#define TW_BIND_56 TW_BIND_48, TW_EIGHT(48)
#define TW_BIND_64 TW_BIND_56, TW_EIGHT(56)
#define TW_BIND_72 TW_BIND_64, TW_EIGHT(64)
#define TW_BIND_80 TW_BIND_72, TW_EIGHT(72)
#define TW_BIND_88 TW_BIND_80, TW_EIGHT(80)
#define TW_BIND_96 TW_BIND_88, TW_EIGHT(88)
#define TW_BIND_104 TW_BIND_96, TW_EIGHT(96)
#define TW_BIND_112 TW_BIND_104, TW_EIGHT(104)
#define TW_BIND_120 TW_BIND_112, TW_EIGHT(112)
#define TW_BIND_128 TW_BIND_120, TW_EIGHT(120)

// n: columns; r = n / 2 registers; o0.. the numbers of the operands after them.
#define TW_WGMMA(n, r, o0, o1, o2, o3, o4, o5, o6, o7) \
  template <> \
  struct Wgmma<n> { \
    template <typename Element, bool kTransposeB> \
    static void shared(float (&d)[r], unsigned long long a, unsigned long long b, bool accumulate) { \
      asm volatile( \
          "{ .reg .pred p; setp.ne.b32 p, %" #o2 ", 0; " \
          "wgmma.mma_async.sync.aligned.m64n" #n "k16.f32.%" #o3 ".%" #o3 " {" TW_LIST_##r "}, " \
          "%" #o0 ", %" #o1 ", p, 1, 1, 0, %" #o4 "; }" \
          : TW_BIND_##r \
          : "l"(a), "l"(b), "r"(static_cast<int>(accumulate)), "C"(Element::kName), \
            "n"(static_cast<int>(kTransposeB))); \
    } \
    template <typename Element, bool kTransposeB> \
    static void registers(float (&d)[r], const unsigned (&a)[4], unsigned long long b, bool accumulate) { \
      asm volatile( \
          "{ .reg .pred p; setp.ne.b32 p, %" #o5 ", 0; " \
          "wgmma.mma_async.sync.aligned.m64n" #n "k16.f32.%" #o6 ".%" #o6 " {" TW_LIST_##r "}, " \
          "{%" #o0 ", %" #o1 ", %" #o2 ", %" #o3 "}, %" #o4 ", p, 1, 1, %" #o7 "; }" \
          : TW_BIND_##r \
          : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(static_cast<int>(accumulate)), \
            "C"(Element::kName), "n"(static_cast<int>(kTransposeB))); \
    } \
  };

TW_WGMMA(16, 8, 8, 9, 10, 11, 12, 13, 14, 15)
TW_WGMMA(32, 16, 16, 17, 18, 19, 20, 21, 22, 23)
TW_WGMMA(48, 24, 24, 25, 26, 27, 28, 29, 30, 31)
TW_WGMMA(64, 32, 32, 33, 34, 35, 36, 37, 38, 39)
TW_WGMMA(80, 40, 40, 41, 42, 43, 44, 45, 46, 47)
TW_WGMMA(96, 48, 48, 49, 50, 51, 52, 53, 54, 55)
TW_WGMMA(112, 56, 56, 57, 58, 59, 60, 61, 62, 63)
TW_WGMMA(128, 64, 64, 65, 66, 67, 68, 69, 70, 71)
TW_WGMMA(144, 72, 72, 73, 74, 75, 76, 77, 78, 79)
TW_WGMMA(160, 80, 80, 81, 82, 83, 84, 85, 86, 87)
TW_WGMMA(176, 88, 88, 89, 90, 91, 92, 93, 94, 95)
TW_WGMMA(192, 96, 96, 97, 98, 99, 100, 101, 102, 103)
TW_WGMMA(208, 104, 104, 105, 106, 107, 108, 109, 110, 111)
TW_WGMMA(224, 112, 112, 113, 114, 115, 116, 117, 118, 119)
TW_WGMMA(240, 120, 120, 121, 122, 123, 124, 125, 126, 127)
TW_WGMMA(256, 128, 128, 129, 130, 131, 132, 133, 134, 135)

#undef TW_LIST_8
#undef TW_BIND_8
#undef TW_LIST_16
#undef TW_BIND_16
#undef TW_LIST_24
#undef TW_BIND_24
#undef TW_LIST_32
#undef TW_BIND_32
#undef TW_LIST_40
#undef TW_BIND_40
#undef TW_LIST_48
#undef TW_BIND_48
#undef TW_LIST_56
#undef TW_BIND_56
#undef TW_LIST_64
#undef TW_BIND_64
#undef TW_LIST_72
#undef TW_BIND_72
#undef TW_LIST_80
#undef TW_BIND_80
#undef TW_LIST_88
#undef TW_BIND_88
#undef TW_LIST_96
#undef TW_BIND_96
#undef TW_LIST_104
#undef TW_BIND_104
#undef TW_LIST_112
#undef TW_BIND_112
#undef TW_LIST_120
#undef TW_BIND_120
#undef TW_LIST_128
#undef TW_BIND_128
#undef TW_EIGHT
#undef TW_WGMMA
// clang-format on

}  // namespace tilewright::kernels
