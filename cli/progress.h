// cli/progress.h: a line of progress on standard error, for long runs on a terminal only.
#pragma once

#include <chrono>
#include <string>

namespace tilewright::cli {

/// Erases its line when it goes. Shows nothing during the first second, and nothing at all when
/// standard error is no terminal.
class Progress {
 public:
  explicit Progress(std::string label);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress();

  /// fraction in [0, 1]; cheap enough to be called often.
  void update(double fraction, const std::string& detail = "");

 private:
  using Clock = std::chrono::steady_clock;

  std::string label_;
  bool terminal_;
  bool shown_ = false;
  Clock::time_point start_;
  Clock::time_point last_;
};

/// A line on standard error that says what is going on, on a terminal only; erased when it goes.
class StatusLine {
 public:
  ~StatusLine();
  void show(const std::string& what) const;
};

}  // namespace tilewright::cli
