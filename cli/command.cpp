// cli/command.cpp: what subcommands share: exit codes, failures and the --json flag.
#include "command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

namespace tilewright::cli {

std::shared_ptr<bool> add_json_flag(CLI::App& app) {
  auto json = std::make_shared<bool>(false);
  app.add_flag("--json", *json, "Print JSON on standard output, units in the names of its fields");
  return json;
}

int exit_code(const Status& status) {
  switch (status.code()) {
    case StatusCode::ok:
      return 0;
    case StatusCode::invalid_argument:
    case StatusCode::unsupported:
    case StatusCode::does_not_fit:
    case StatusCode::unavailable:
      return 2;
    case StatusCode::not_prepared:
    case StatusCode::out_of_memory:
    case StatusCode::io_error:
    case StatusCode::internal:
      return 1;
  }
  return 1;
}

void print_failure(const Status& status, bool json) {
  fmt::print(stderr, "tilewright: {}: {}\n", name(status.code()), status.message());
  if (!json) return;
  const nlohmann::json failure = {
      {"error", {{"code", name(status.code())}, {"message", status.message()}}}};
  // Bytes of a file's name that are not UTF-8 are replaced, never thrown over.
  fmt::print("{}\n", failure.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
}

}  // namespace tilewright::cli
