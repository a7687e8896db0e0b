// cli/child_process.cpp: runs this program again and hands back what it printed.
#include "child_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "files/error_text.h"

namespace tilewright::cli {
namespace {

constexpr const char* kSelf = "/proc/self/exe";

Status failed(const char* what, int error) {
  return {StatusCode::unavailable, fmt::format("{} {}: {}", what, kSelf, files::error_text(error))};
}

}  // namespace

Result<ChildResult> run_self(const std::vector<std::string>& arguments) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return failed("opening a pipe from", errno);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  std::vector<std::string> words = {"tilewright"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  pid_t child = 0;
  const int error = posix_spawn(&child, kSelf, &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (error != 0) {
    close(ends[0]);
    return failed("starting", error);
  }
  ChildResult result;
  std::array<char, 4096> chunk{};
  for (;;) {
    const ssize_t got = read(ends[0], chunk.data(), chunk.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    result.output.append(chunk.data(), static_cast<std::size_t>(got));
  }
  close(ends[0]);
  int state = 0;
  while (waitpid(child, &state, 0) < 0) {
    if (errno != EINTR) return failed("waiting for", errno);
  }
  result.exit_code = WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state);
  return result;
}

}  // namespace tilewright::cli
