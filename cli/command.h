// cli/command.h: what a subcommand is: its flags, and an action that reports a Status.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "tilewright/status.h"

namespace CLI {
class App;
}

namespace tilewright::cli {

/// A subcommand. Adding one is a file with an add_* function, and a line in main.cpp.
struct Command {
  CLI::App* app = nullptr;
  std::function<Status()> action;    ///< prints its result; runs after the flags were read
  std::shared_ptr<const bool> json;  ///< whether --json was given
};

Command add_bench(CLI::App& app);
Command add_demo(CLI::App& app);
Command add_info(CLI::App& app);
Command add_kernels(CLI::App& app);
Command add_machines(CLI::App& app);
Command add_plan(CLI::App& app);
Command add_run(CLI::App& app);
Command add_simulate(CLI::App& app);
Command add_sweep(CLI::App& app);
Command add_verify(CLI::App& app);

/// Adds --json to a subcommand.
std::shared_ptr<bool> add_json_flag(CLI::App& app);

/// The status with the field that its message begins with replaced by the subcommand's flag for it,
/// where it has one: "kv_heads is 3" becomes "--kv-heads is 3".
Status in_words_of_flags(const CLI::App& app, const Status& status);

/// 0: ok. 2: what was asked is wrong, or refused by name. 1: it was accepted, but the run failed.
int exit_code(const Status& status);

/// Prints a failure on stderr, and with --json also on stdout as {"error": ...}.
void print_failure(const Status& status, bool json);

}  // namespace tilewright::cli
