// cli/files/error_text.cpp: text from files and the system, made safe to print in a message.
#include "files/error_text.h"

#include <fmt/format.h>

#include <system_error>

namespace tilewright::files {

std::string quote(std::string_view text) {
  constexpr std::size_t kMaxBytes = 80;
  std::string out = "'";
  for (const char c : text.substr(0, kMaxBytes)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte > 0x7e) {
      out += fmt::format("\\x{:02x}", byte);
    } else {
      out += c;
    }
  }
  out += "'";
  if (text.size() > kMaxBytes) out += fmt::format("... ({} bytes)", text.size());
  return out;
}

std::string error_text(int error_number) {
  return std::generic_category().message(error_number);
}

}  // namespace tilewright::files
