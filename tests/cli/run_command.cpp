// tests/cli/run_command.cpp: runs the command `tilewright` as a user would.
#include "run_command.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "file_text.h"

namespace tilewright::test {

CommandResult run_command(const std::vector<std::string>& arguments) {
  const ScratchFolder folder;
  const std::string out = folder.path("out");
  const std::string err = folder.path("err");
  std::vector<std::string> words = {TILEWRIGHT_COMMAND};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    dup2(open("/dev/null", O_RDONLY), STDIN_FILENO);
    dup2(open(out.c_str(), O_CREAT | O_WRONLY, 0600), STDOUT_FILENO);
    dup2(open(err.c_str(), O_CREAT | O_WRONLY, 0600), STDERR_FILENO);
    execv(argv[0], argv.data());
    _exit(127);
  }
  int state = 0;
  waitpid(child, &state, 0);
  const int code = WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state);
  return {code, folder.read("out"), folder.read("err")};
}

}  // namespace tilewright::test
