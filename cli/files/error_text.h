// cli/files/error_text.h: text from files and the system, made safe to print in a message.
#pragma once

#include <string>
#include <string_view>

namespace tilewright::files {

/// In single quotes, at most 80 bytes of it, control characters and bytes above 126 escaped.
std::string quote(std::string_view text);

/// The system's words for an errno value.
std::string error_text(int error_number);

}  // namespace tilewright::files
