// tilewright/version.h: the library's version.
#pragma once

#include <string_view>

namespace tilewright {

/// "major.minor.patch"
std::string_view version() noexcept;

}  // namespace tilewright
