// src/backend/cpu/instruction_sets.cpp: which instruction sets this CPU runs, and their kernels.
#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>

#include "backend/cpu/cpu_backend.h"
#include "backend/cpu/kernels.h"
#include "machine/instruction_set.h"

namespace tilewright::cpu {
namespace {

struct InstructionSet {
  std::string_view name;
  const Kernels* kernels;       ///< for any dtype
  const Kernels* bf16_kernels;  ///< for bf16 operands, where they differ
};

// Those that this build has and this CPU runs; the last is the default.
std::vector<InstructionSet> find_sets() {
  const std::vector<std::string> features = machine::this_processor().features;
  const auto has = [&](std::initializer_list<std::string_view> needed) {
    return std::ranges::all_of(needed, [&](std::string_view feature) {
      return std::ranges::find(features, feature) != features.end();
    });
  };
  std::vector<InstructionSet> sets{{"portable", &portable::kKernels, nullptr}};
#if defined(__x86_64__)
  if (has({"avx2", "fma", "f16c"})) sets.push_back({"avx2", &avx2::kKernels, nullptr});
  if (has({"avx2", "fma", "f16c", "avx512f", "avx512dq", "avx512bw", "avx512vl"})) {
    sets.push_back({"avx512", &avx512::kKernels, nullptr});
    if (has({"avx512_bf16"})) {
      sets.push_back({"avx512_bf16", &avx512::kKernels, &avx512_bf16::kKernels});
    }
    if (has({"avx512_bf16", "amx_tile", "amx_bf16"})) {
      sets.push_back({"amx_bf16", &avx512::kKernels, &amx_bf16::kKernels});
    }
  }
#elif defined(__aarch64__)
  if (has({"neon"})) sets.push_back({"neon", &neon::kKernels, nullptr});
#endif
  return sets;
}

const std::vector<InstructionSet>& all_sets() {
  static const std::vector<InstructionSet> sets = find_sets();
  return sets;
}

}  // namespace

std::vector<std::string> instruction_sets() {
  std::vector<std::string> names;
  for (const InstructionSet& set : all_sets()) names.emplace_back(set.name);
  return names;
}

Result<const Kernels*> find_kernels(std::string_view isa, DType dtype) {
  const InstructionSet* found = nullptr;
  for (const InstructionSet& set : all_sets()) {
    if (isa.empty() || set.name == isa) found = &set;
  }
  if (found == nullptr) {
    return Status{StatusCode::unavailable,
                  fmt::format("plan.isa is \"{}\"; accepted on this CPU: {}", isa,
                              fmt::join(instruction_sets(), ", "))};
  }
  return dtype == DType::bf16 && found->bf16_kernels != nullptr ? found->bf16_kernels
                                                                : found->kernels;
}

}  // namespace tilewright::cpu
