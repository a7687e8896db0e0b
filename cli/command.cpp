// cli/command.cpp: what subcommands share: exit codes, failures and the --json flag.
#include "command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <string_view>

namespace tilewright::cli {

std::shared_ptr<bool> add_json_flag(CLI::App& app) {
  auto json = std::make_shared<bool>(false);
  app.add_flag("--json", *json, "Print JSON on standard output, units in the names of its fields");
  return json;
}

Status in_words_of_flags(const CLI::App& app, const Status& status) {
  constexpr struct {
    std::string_view field, flag, words;
  } kFlags[] = {{"batch", "--batch", ""},
                {"heads", "--heads", ""},
                {"kv_heads", "--kv-heads", ""},
                {"q_lengths.max_tokens", "--q-len", ""},
                {"kv_lengths.max_tokens", "--kv-len", ""},
                {"qk_dim", "--dim", ""},
                {"v_dim", "--v-dim", ""},
                {"dtype", "--dtype", ""},
                {"o_dtype", "--out-dtype", ""},
                {"scale", "--scale", ""},
                {"softcap", "--softcap", ""},
                {"mask.window_left", "--window", "'s left"},
                {"mask.window_right", "--window", "'s right"},
                {"tile", "--tile", ""},
                {"plan.tile", "--tile", ""},
                {"options.tile.q_rows", "--tile", "'s query rows"},
                {"options.tile.kv_rows", "--tile", "'s key rows"},
                {"options.workers", "--threads", ""},
                {"plan.schedule", "--schedule", ""},
                {"plan.isa", "--isa", ""}};
  const std::string_view message = status.message();
  const std::size_t end = message.find(" is ");
  for (const auto& known : kFlags) {
    if (message.substr(0, end) != known.field) continue;
    if (app.get_option_no_throw(std::string(known.flag)) == nullptr) break;
    return {status.code(), fmt::format("{}{}{}", known.flag, known.words, message.substr(end))};
  }
  return status;
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
