// src/machine/instruction_set.cpp: asks the processor what it is and can do.
#include "machine/instruction_set.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

#include <cstdint>
#include <cstring>

namespace tilewright::machine {

#if defined(__x86_64__)
namespace {

struct Registers {
  std::uint32_t a = 0, b = 0, c = 0, d = 0;
};

Registers cpuid(std::uint32_t leaf, std::uint32_t subleaf = 0) {
  Registers r;
  if (__get_cpuid_count(leaf, subleaf, &r.a, &r.b, &r.c, &r.d) == 0) return {};
  return r;
}

bool bit(std::uint32_t word, int index) {
  return ((word >> index) & 1u) != 0;
}

// Which registers the operating system saves: bits 1-2 SSE and AVX, 5-7 AVX-512, 17-18 AMX.
std::uint64_t saved_state() {
  if (!bit(cpuid(1).c, 27)) return 0;
  std::uint32_t low = 0;
  std::uint32_t high = 0;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (static_cast<std::uint64_t>(high) << 32) | low;
}

// Linux gives a process the tile registers only when asked.
bool ask_for_tiles() {
  constexpr long kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr long kTileData = 18;               // XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

std::string brand() {
  char text[49] = {};
  for (std::uint32_t i = 0; i < 3; ++i) {
    const Registers r = cpuid(0x80000002u + i);
    std::memcpy(text + std::size_t{16} * i, &r, 16);
  }
  std::string name = text;
  while (!name.empty() && name.back() == ' ') name.pop_back();
  return name.substr(
      name.find_first_not_of(' ') == std::string::npos ? 0 : name.find_first_not_of(' '));
}

std::string vendor() {
  const Registers r = cpuid(0);
  const std::uint32_t words[3] = {r.b, r.d, r.c};
  std::string id(reinterpret_cast<const char*>(words), 12);
  if (id == "AuthenticAMD") return "AMD";
  if (id == "GenuineIntel") return "Intel";
  return id;
}

std::uint32_t family() {
  const std::uint32_t a = cpuid(1).a;
  const std::uint32_t base = (a >> 8) & 15u;
  return base == 15 ? base + ((a >> 20) & 255u) : base;
}

}  // namespace

Processor this_processor() {
  Processor p;
  p.name = brand();
  p.vendor = vendor();
  const std::uint64_t saved = saved_state();
  const bool avx = (saved & 0x6) == 0x6;
  const bool avx512 = avx && (saved & 0xe0) == 0xe0;
  const bool amx = (saved & 0x60000) == 0x60000 && ask_for_tiles();
  const Registers one = cpuid(1);
  const Registers seven = cpuid(7);
  const Registers seven_one = cpuid(7, 1);
  const struct {
    const char* name;
    bool present;
  } features[] = {
      {"avx2", avx && bit(seven.b, 5)},
      {"fma", avx && bit(one.c, 12)},
      {"f16c", avx && bit(one.c, 29)},
      {"avx512f", avx512 && bit(seven.b, 16)},
      {"avx512dq", avx512 && bit(seven.b, 17)},
      {"avx512bw", avx512 && bit(seven.b, 30)},
      {"avx512vl", avx512 && bit(seven.b, 31)},
      {"avx512_bf16", avx512 && bit(seven_one.a, 5)},
      {"avx512_fp16", avx512 && bit(seven.d, 23)},
      {"amx_tile", amx && bit(seven.d, 24)},
      {"amx_bf16", amx && bit(seven.d, 22)},
      {"amx_fp16", amx && bit(seven_one.a, 21)},
  };
  for (const auto& feature : features) {
    if (feature.present) p.features.emplace_back(feature.name);
  }
  const bool v3 = features[0].present && features[1].present;
  const bool v4 = v3 && features[3].present && features[4].present && features[5].present &&
                  features[6].present;
  p.arch = v4 ? "x86-64-v4" : v3 ? "x86-64-v3" : "x86-64";
  // Two multiply-add pipes are the rule. Zen 4 (family 25) splits 512-bit operations over 256-bit
  // ones.
  const bool half_rate = p.vendor == "AMD" && family() <= 25;
  const double lanes = v4 && !half_rate ? 16 : v3 ? 8 : 4;
  p.f32_flops_per_clock = lanes * 2 * 2;
  if (features[10].present) {
    p.bf16_flops_per_clock = 2048;
  } else if (features[7].present) {
    p.bf16_flops_per_clock = 2 * p.f32_flops_per_clock;
  }
  return p;
}

#elif defined(__aarch64__)

Processor this_processor() {
  Processor p;
  p.name = "AArch64 processor";
  p.arch = "aarch64";
  p.features = {"neon"};
  p.f32_flops_per_clock = 4 * 2 * 2;
#if defined(__linux__) && defined(HWCAP2_BF16)
  if ((getauxval(AT_HWCAP2) & HWCAP2_BF16) != 0) {
    p.features.emplace_back("bf16");
    p.bf16_flops_per_clock = 4 * p.f32_flops_per_clock;
  }
#endif
#if defined(__linux__) && defined(HWCAP_SVE)
  if ((getauxval(AT_HWCAP) & HWCAP_SVE) != 0) p.features.emplace_back("sve");
#endif
  return p;
}

#else

Processor this_processor() {
  Processor p;
  p.name = "processor";
  p.arch = "unknown";
  p.f32_flops_per_clock = 4;
  return p;
}

#endif

}  // namespace tilewright::machine
