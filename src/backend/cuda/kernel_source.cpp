// src/backend/cuda/kernel_source.cpp: what identifies one kernel.
#include "backend/cuda/kernel_source.h"

#include "backend/cuda/checksum.h"

namespace tilewright::cuda {

std::string KernelSource::key() const {
  std::string rest;
  for (const std::string* part : {&entry, &file, &generated_name, &generated_text}) {
    rest += *part;
    rest += '\n';
  }
  return name + " #" + hexadecimal(checksum(rest));
}

}  // namespace tilewright::cuda
