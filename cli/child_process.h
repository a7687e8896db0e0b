// cli/child_process.h: runs this program again and hands back what it printed.
#pragma once

#include <string>
#include <vector>

#include "tilewright/status.h"

namespace tilewright::cli {

struct ChildResult {
  int exit_code = 0;   ///< 128 + signal if a signal ended it
  std::string output;  ///< its standard output; standard error is shared with this process
};

/// Waits until the child ends. arguments exclude the program's own name.
Result<ChildResult> run_self(const std::vector<std::string>& arguments);

}  // namespace tilewright::cli
