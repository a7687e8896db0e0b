// tests/cli/run_command.h: runs the command `tilewright` as a user would, and keeps what it
// printed.
#pragma once

#include <string>
#include <vector>

namespace tilewright::test {

struct CommandResult {
  int exit_code = 0;  ///< 128 + signal if a signal ended it
  std::string out, err;
};

/// Standard input is empty; standard output and error are files, so no terminal.
CommandResult run_command(const std::vector<std::string>& arguments);

}  // namespace tilewright::test
