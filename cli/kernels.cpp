// cli/kernels.cpp: `tilewright kernels`: builds, lists and clears the compiled CUDA kernels.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <thread>

#include "backend/cuda/disk_cache.h"
#include "backend/cuda/kernel_pack.h"
#include "backend/cuda/kernel_source.h"
#include "backend/cuda/locations.h"
#include "backend/cuda/pack_builder.h"
#include "backend/cuda/packed_kernels.h"
#include "command.h"
#include "text.h"

namespace tilewright::cli {
namespace {

using json = nlohmann::ordered_json;

struct KernelsFlags {
  std::string out;
  int jobs = 0;
  std::shared_ptr<bool> json;
};

void print_json(const json& value) {
  fmt::print("{}\n", value.dump(2, ' ', false, json::error_handler_t::replace));
}

Status build(const KernelsFlags& flags) {
  const Result<cuda::Nvrtc>& nvrtc = cuda::nvrtc();
  if (!nvrtc.ok()) return nvrtc.status();
  if (!nvrtc->trusted()) {
    return {StatusCode::unavailable,
            fmt::format("NVRTC at {} is version {}; accepted for a pack: {} or newer", nvrtc->path,
                        nvrtc->version.text(), cuda::kTrustedNvrtc.text())};
  }
  const int jobs =
      flags.jobs > 0 ? flags.jobs : static_cast<int>(std::thread::hardware_concurrency());
  const Result<cuda::PackReport> report =
      cuda::build_pack(flags.out, *nvrtc, cuda::packed_kernels(), jobs);
  if (!report.ok()) return report.status();
  if (!report->faults.empty()) return {StatusCode::internal, report->faults};
  if (*flags.json) {
    print_json({{"file", flags.out},
                {"kernels", report->kernels},
                {"bytes", report->file_bytes},
                {"seconds", report->seconds},
                {"slowest_kernel_seconds", report->slowest_kernel_seconds},
                {"compiler", "NVRTC " + nvrtc->version.text()}});
  } else {
    fmt::print("{} kernels, {}, in {}{}\n", report->kernels,
               bytes_text(static_cast<double>(report->file_bytes)), seconds_text(report->seconds),
               report->seconds == 0 ? ": already there" : "");
  }
  return {};
}

json pack_json(const Result<cuda::KernelPack>& pack) {
  if (!pack.ok()) return {{"error", pack.status().message()}};
  json kernels = json::array();
  for (const auto& [key, entry] : pack->entries()) {
    kernels.push_back({{"key", key},
                       {"bytes", entry.size_bytes},
                       {"registers", entry.facts.register_count},
                       {"code_bytes", entry.facts.code_bytes}});
  }
  return {{"file", pack->file().string()},
          {"compiler", "NVRTC " + pack->header().compiler_version},
          {"architecture", pack->header().architecture},
          {"kernels", kernels}};
}

Status list(const KernelsFlags& flags) {
  const Result<cuda::KernelPack> pack =
      cuda::KernelPack::find(cuda::pack_candidates(cuda::kPackFileName), cuda::embedded_digest());
  const cuda::DiskCache cache(cuda::cache_folder());
  const auto entries = cache.list();
  const Result<cuda::Nvrtc>& nvrtc = cuda::nvrtc();
  if (*flags.json) {
    json cached = json::array();
    for (const auto& entry : entries) {
      cached.push_back(
          {{"file", entry.file.string()}, {"key", entry.key}, {"bytes", entry.size_bytes}});
    }
    print_json(
        {{"sources", cuda::embedded_digest()},
         {"pack", pack_json(pack)},
         {"cache", {{"folder", cache.folder().string()}, {"kernels", cached}}},
         {"compiler", nvrtc.ok() ? json{{"file", nvrtc->path}, {"version", nvrtc->version.text()}}
                                 : json{{"error", nvrtc.status().message()}}}});
    return {};
  }
  fmt::print("{:<10}{}\n", "sources", cuda::embedded_digest());
  if (pack.ok()) {
    fmt::print("{:<10}{}: {} kernels for {}, compiled by NVRTC {}\n", "pack", pack->file().string(),
               pack->entries().size(), pack->header().architecture,
               pack->header().compiler_version);
    for (const auto& [key, entry] : pack->entries()) {
      fmt::print("  {}  {}, {} registers\n", key, bytes_text(static_cast<double>(entry.size_bytes)),
                 entry.facts.register_count);
    }
  } else {
    fmt::print("{:<10}{}\n", "pack", pack.status().message());
  }
  fmt::print("{:<10}{}: {} kernels\n", "cache",
             cache.folder().empty() ? "off" : cache.folder().string(), entries.size());
  for (const auto& entry : entries) {
    fmt::print("  {}\n", entry.key.empty() ? "damaged: " + entry.file.string()
                                           : entry.key.substr(0, entry.key.find('\n')));
  }
  fmt::print("{:<10}{}\n", "compiler",
             nvrtc.ok() ? fmt::format("NVRTC {} at {}", nvrtc->version.text(), nvrtc->path)
                        : nvrtc.status().message());
  return {};
}

Status clean(const KernelsFlags& flags) {
  const cuda::DiskCache cache(cuda::cache_folder());
  const Result<int> removed = cache.clear();
  if (!removed.ok()) return removed.status();
  if (*flags.json) {
    print_json({{"folder", cache.folder().string()}, {"removed", *removed}});
  } else {
    fmt::print("removed {} files from {}\n", *removed, cache.folder().string());
  }
  return {};
}

}  // namespace

Command add_kernels(CLI::App& app) {
  CLI::App* kernels =
      app.add_subcommand("kernels", "Build, list or clear the compiled CUDA kernels");
  kernels->require_subcommand(1);
  kernels->footer(
      R"(Kernels come from the pack that is shipped, then from the user's cache, then from NVRTC.
TILEWRIGHT_KERNEL_PACK, TILEWRIGHT_CACHE ("off" for none) and TILEWRIGHT_NVRTC say where these are.

Examples:
  tilewright kernels list
  tilewright kernels build --out tilewright-sm_90a.pack
  tilewright kernels clean)");
  auto flags = std::make_shared<KernelsFlags>();
  flags->json = add_json_flag(*kernels);
  CLI::App* build_app = kernels->add_subcommand("build", "Compile the pack");
  build_app->add_option("--out", flags->out, "The pack's file")->required()->type_name("FILE");
  build_app->add_option("--jobs", flags->jobs, "Kernels compiled at once (default: all cores)");
  const CLI::App* list_app = kernels->add_subcommand("list", "Where kernels are, and which");
  kernels->add_subcommand("clean", "Empty the user's cache");
  for (CLI::App* sub : kernels->get_subcommands({})) sub->fallthrough();
  return {kernels,
          [=]() -> Status {
            if (build_app->parsed()) return build(*flags);
            return list_app->parsed() ? list(*flags) : clean(*flags);
          },
          flags->json};
}

}  // namespace tilewright::cli
