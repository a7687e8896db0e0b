// src/api/version.cpp: the version that the build was configured with.
#include "tilewright/version.h"

namespace tilewright {

std::string_view version() noexcept {
  return TILEWRIGHT_VERSION;
}

}  // namespace tilewright
