// cli/main.cpp: the command `tilewright`: reads flags, runs one subcommand, reports its outcome.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <exception>
#include <iostream>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "command.h"
#include "text.h"
#include "tilewright/version.h"

namespace tilewright::cli {
namespace {

const Status kUnwritable{StatusCode::io_error, "standard output could not be written"};

// No flag takes an empty value, and CLI11 would read "--causal=" as "--causal".
Status check_values(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    const std::string_view before = argv[i - 1];
    std::string_view flag;
    if (word.empty()) flag = before.starts_with("--") ? before : "an argument";
    if (word.starts_with("--") && word.find('=') + 1 == word.size()) {
      flag = word.substr(0, word.size() - 1);
    }
    if (flag.empty()) continue;
    return {
        StatusCode::invalid_argument,
        fmt::format("{} is ''; accepted: a value that is not empty, or the flag left out", flag)};
  }
  return {};
}

Status run_action(const Command& command) {
  try {
    return command.action();
  } catch (const std::bad_alloc&) {
    return {StatusCode::out_of_memory, "an allocation failed"};
  } catch (const std::exception& error) {
    return {StatusCode::internal, error.what()};
  }
}

// Flags that CLI11 refuses: its message, then where help is. Asking for help is no failure.
int report_parse(const CLI::App& app, const CLI::ParseError& error, bool json) {
  if (error.get_exit_code() == 0) {
    app.exit(error);
    if (std::cout.flush() && std::fflush(stdout) == 0) return 0;
    print_failure(kUnwritable, json);
    return exit_code(kUnwritable);
  }
  std::string message = error.what();
  if (app.get_subcommands().empty() && !app.remaining().empty()) {
    message = fmt::format("the subcommand is {}; accepted: ", quote(app.remaining().front()));
    for (const CLI::App* sub : app.get_subcommands({})) message += sub->get_name() + " ";
    message.pop_back();
  }
  print_failure({StatusCode::invalid_argument, message}, json);
  std::string name = "tilewright";
  for (const CLI::App* sub : app.get_subcommands()) name += " " + sub->get_name();
  fmt::print(stderr, "See: {} --help\n", name);
  return exit_code({StatusCode::invalid_argument, ""});
}

// Shows "--dim INTEGER" where CLI11 would show "--dim INT:INTEGER".
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_option_opts(const CLI::Option* option) const override {
    std::string text = CLI::Formatter::make_option_opts(option);
    for (const std::string_view prefix : {"TEXT:", "INT:"}) {
      const std::size_t at = text.find(prefix);
      if (at != std::string::npos) text.erase(at, prefix.size());
    }
    return text;
  }
};

int run_command(int argc, char** argv) {
  CLI::App app{
      "Exact attention scheduled for the memory hierarchy: tiles that provably fit, bytes that are "
      "planned and reported.",
      "tilewright"};
  app.formatter(std::make_shared<HelpFormatter>());
  app.set_version_flag("--version", std::string(version()));
  app.require_subcommand(1);
  app.footer("Each subcommand has --help with examples. Exit code: 0 ok, 2 bad input, 1 failed.");
  const std::vector<Command> commands = {
      add_demo(app),   add_run(app),      add_plan(app),  add_simulate(app), add_sweep(app),
      add_verify(app), add_machines(app), add_bench(app), add_info(app),     add_kernels(app),
  };
  // The flag may stand behind what is refused.
  const bool json = std::find(argv, argv + argc, std::string_view("--json")) != argv + argc;
  const Status values = check_values(argc, argv);
  if (!values.ok()) {
    print_failure(values, json);
    return exit_code(values);
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return report_parse(app, error, json);
  }
  for (const Command& command : commands) {
    if (!command.app->parsed()) continue;
    Status status = run_action(command);
    if (std::fflush(stdout) != 0 && status.ok()) {
      status = kUnwritable;
    }
    if (!status.ok()) print_failure(in_words_of_flags(*command.app, status), *command.json);
    return exit_code(status);
  }
  return 0;
}

}  // namespace
}  // namespace tilewright::cli

// An input file that shrinks while it is mapped raises SIGBUS where it is read.
extern "C" void report_lost_file(int) {
  constexpr std::string_view kMessage =
      "tilewright: io error: an input file became shorter while it was being read\n";
  (void)!write(STDERR_FILENO, kMessage.data(), kMessage.size());
  _exit(1);
}

int main(int argc, char** argv) {
  std::signal(SIGBUS, report_lost_file);
  try {
    return tilewright::cli::run_command(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "tilewright: internal: %s\n", error.what());
    return 1;
  }
}
