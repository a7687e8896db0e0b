// src/machine/instruction_set.h: what the processor itself says it is and can do.
#pragma once

#include <string>
#include <vector>

namespace tilewright::machine {

struct Processor {
  std::string name;
  std::string vendor;
  std::string arch;                   ///< "x86-64-v4", "aarch64", ...
  std::vector<std::string> features;  ///< usable ones: the operating system saves their registers
  /// fp32 FLOP a clock of one core's multiply-add pipes: the width of the SIMD registers times two
  /// pipes, or what is known of this family.
  double f32_flops_per_clock = 0;
  double bf16_flops_per_clock = 0;  ///< of the bf16 dot product or tile unit; 0: none
};

Processor this_processor();

}  // namespace tilewright::machine
