// src/problem/status.cpp: the names of status codes.
#include "tilewright/status.h"

namespace tilewright {

std::string_view name(StatusCode code) noexcept {
  switch (code) {
    case StatusCode::ok:
      return "ok";
    case StatusCode::invalid_argument:
      return "invalid argument";
    case StatusCode::unsupported:
      return "unsupported";
    case StatusCode::does_not_fit:
      return "does not fit";
    case StatusCode::not_prepared:
      return "not prepared";
    case StatusCode::unavailable:
      return "unavailable";
    case StatusCode::out_of_memory:
      return "out of memory";
    case StatusCode::io_error:
      return "input/output error";
    case StatusCode::internal:
      return "internal error";
  }
  return "unknown";
}

}  // namespace tilewright
