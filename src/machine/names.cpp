// src/machine/names.cpp: the names of a machine's enumerators.
#include "tilewright/machine.h"

namespace tilewright {

std::string_view name(Grade grade) noexcept {
  switch (grade) {
    case Grade::absent:
      return "absent";
    case Grade::recalled:
      return "recalled";
    case Grade::derived:
      return "derived";
    case Grade::read:
      return "read";
    case Grade::measured:
      return "measured";
    case Grade::queried:
      return "queried";
  }
  return "unknown";
}

std::string_view name(MachineKind kind) noexcept {
  switch (kind) {
    case MachineKind::cpu:
      return "cpu";
    case MachineKind::gpu:
      return "gpu";
    case MachineKind::npu:
      return "npu";
  }
  return "unknown";
}

}  // namespace tilewright
