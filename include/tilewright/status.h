// tilewright/status.h: how calls report success or failure, as values; nothing here throws.
#pragma once

#include <cassert>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace tilewright {

/// What kind of failure a Status reports. Values are stable: the C ABI shares them.
enum class StatusCode {
  ok = 0,
  invalid_argument =
      1,              ///< A field is wrong; the message names it, its value and what is accepted.
  unsupported = 2,    ///< Well formed, but the chosen backend refuses it by name.
  does_not_fit = 3,   ///< A tile or workspace exceeds a store: need, have, breakdown, what fits.
  not_prepared = 4,   ///< A kernel would have to be compiled where that is not allowed.
  unavailable = 5,    ///< A device, driver or library is absent or too old.
  out_of_memory = 6,  ///< An allocation failed.
  io_error = 7,       ///< A file could not be read or written.
  internal = 8,       ///< A defect in Tilewright.
};

/// The code's name in words, such as "invalid argument".
std::string_view name(StatusCode code) noexcept;

/// The outcome of a call: ok, or a code and a message that names the field, its value and what
/// would be accepted.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(StatusCode code, std::string message) : code_(code), message_(std::move(message)) {}

  bool ok() const noexcept { return code_ == StatusCode::ok; }
  explicit operator bool() const noexcept { return ok(); }
  StatusCode code() const noexcept { return code_; }
  const std::string& message() const noexcept { return message_; }

 private:
  StatusCode code_ = StatusCode::ok;
  std::string message_;
};

/// A value, or the Status that says why there is none. Test before taking the value.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}  // NOLINT(*-explicit-*)
  Result(Status status) : status_(std::move(status)) {
    assert(!status_.ok());
  }  // NOLINT(*-explicit-*)

  bool ok() const noexcept { return value_.has_value(); }
  explicit operator bool() const noexcept { return ok(); }
  const Status& status() const noexcept { return status_; }

  T& value() & { return *value_; }
  const T& value() const& { return *value_; }
  T&& value() && { return *std::move(value_); }
  T& operator*() & { return *value_; }
  const T& operator*() const& { return *value_; }
  T&& operator*() && { return *std::move(value_); }
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }

 private:
  std::optional<T> value_;
  Status status_;
};

}  // namespace tilewright
