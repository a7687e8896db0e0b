// cli/progress.cpp: a line of progress on standard error.
#include "progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <utility>

#include "text.h"

namespace tilewright::cli {

Progress::Progress(std::string label)
    : label_(std::move(label)),
      terminal_(isatty(STDERR_FILENO) != 0),
      start_(Clock::now()),
      last_(start_) {}

Progress::~Progress() {
  if (shown_) std::fputs("\r\x1b[K", stderr);
}

void Progress::update(double fraction, const std::string& detail) {
  if (!terminal_) return;
  const Clock::time_point now = Clock::now();
  using Seconds = std::chrono::duration<double>;
  const double elapsed = Seconds(now - start_).count();
  if (elapsed < 1 || (shown_ && Seconds(now - last_).count() < 0.1)) return;
  last_ = now;
  shown_ = true;
  std::string line = fmt::format("{}  {:3.0f}%  {}", label_, 100 * fraction, detail);
  if (fraction > 0.01) {
    line += fmt::format("  about {} left", seconds_text(elapsed * (1 - fraction) / fraction));
  }
  fmt::print(stderr, "\r\x1b[K{}", line);
  std::fflush(stderr);
}

StatusLine::~StatusLine() {
  show("");
}

void StatusLine::show(const std::string& what) const {
  if (isatty(STDERR_FILENO) == 0) return;
  fmt::print(stderr, "\r\x1b[K{}", what);
  std::fflush(stderr);
}

}  // namespace tilewright::cli
