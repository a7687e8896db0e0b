// src/backend/cuda/compiler.cpp: compiles one kernel with NVRTC and judges what came out.
#include "backend/cuda/compiler.h"

#include <fmt/format.h>

#include <chrono>
#include <regex>

namespace tilewright::cuda {
namespace {

class Program {
 public:
  Program(const NvrtcApi& api, NvrtcProgram handle) : api_(api), handle_(handle) {}
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program() { (void)api_.destroy_program(&handle_); }

  NvrtcProgram handle() const { return handle_; }

  std::string log() const {
    std::size_t bytes = 0;
    if (api_.get_log_size(handle_, &bytes) != NvrtcResult::success || bytes == 0) return {};
    std::string text(bytes, '\0');
    if (api_.get_log(handle_, text.data()) != NvrtcResult::success) return {};
    text.resize(bytes - 1);  // The size counts the final zero.
    return text;
  }

 private:
  const NvrtcApi& api_;
  NvrtcProgram handle_;
};

Status failure(const Nvrtc& nvrtc, const KernelSource& source, std::string_view doing,
               NvrtcResult result, std::string_view log) {
  return {
      StatusCode::internal,
      fmt::format("NVRTC {} failed while {} kernel {}: {}{}{}", nvrtc.version.text(), doing,
                  source.name, nvrtc.api.get_error_string(result), log.empty() ? "" : "\n", log)};
}

}  // namespace

Result<CompiledKernel> compile(const Nvrtc& nvrtc, const KernelSource& source,
                               std::span<const EmbeddedFile> files) {
  const auto start = std::chrono::steady_clock::now();
  const NvrtcApi& api = nvrtc.api;
  std::vector<std::string> names;
  std::vector<std::string> texts;
  const auto add = [&](std::string_view file_name, std::string_view text) {
    names.emplace_back(file_name);
    texts.emplace_back(text);
  };
  for (const EmbeddedFile& file : files) add(file.name, file.text);
  if (!source.generated_name.empty()) add(source.generated_name, source.generated_text);
  std::vector<const char*> name_pointers;
  std::vector<const char*> text_pointers;
  // NOLINTBEGIN(performance-inefficient-vector-operation): a dozen files
  for (const std::string& text : names) name_pointers.push_back(text.c_str());
  for (const std::string& text : texts) text_pointers.push_back(text.c_str());
  // NOLINTEND(performance-inefficient-vector-operation)

  const std::string main_text = fmt::format("#include \"{}\"\n", source.file);
  NvrtcProgram handle = nullptr;
  NvrtcResult result = api.create_program(&handle, main_text.c_str(), "tilewright.cu",
                                          static_cast<int>(names.size()), text_pointers.data(),
                                          name_pointers.data());
  if (result != NvrtcResult::success) return failure(nvrtc, source, "opening", result, {});
  const Program program(api, handle);

  const std::string architecture = fmt::format("--gpu-architecture={}", kArchitecture);
  std::vector<const char*> options{architecture.c_str(), "--std=c++20",
                                   "--device-as-default-execution-space", "--ptxas-options=-v"};
  // What NVRTC takes from its own cache comes without the assembler's log, which is judged.
  if (nvrtc.version >= kCachingNvrtc) options.push_back("--no-cache");
  result = api.compile_program(handle, static_cast<int>(options.size()), options.data());
  CompiledKernel compiled;
  compiled.log = program.log();
  if (result != NvrtcResult::success) {
    return failure(nvrtc, source, "compiling", result, compiled.log);
  }
  std::size_t bytes = 0;
  result = api.get_cubin_size(handle, &bytes);
  if (result == NvrtcResult::success) {
    compiled.cubin.resize(bytes);
    result = api.get_cubin(handle, compiled.cubin.data());
  }
  if (result != NvrtcResult::success) {
    return failure(nvrtc, source, "fetching", result, compiled.log);
  }
  Result<CubinFacts> facts = read_cubin(compiled.cubin, source.entry);
  if (!facts) return facts.status();
  compiled.facts = *facts;
  compiled.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return compiled;
}

std::vector<std::string> performance_faults(const CompiledKernel& kernel) {
  static const std::regex serialised("C75(0[89]|1[0-5])|Potential Performance Loss");
  static const std::regex spilled("([0-9]+) bytes spill (stores|loads)");
  std::vector<std::string> faults;
  for (std::size_t begin = 0; begin < kernel.log.size();) {
    const std::size_t end = std::min(kernel.log.find('\n', begin), kernel.log.size());
    const std::string line = kernel.log.substr(begin, end - begin);
    begin = end + 1;
    bool faulty = std::regex_search(line, serialised);
    for (std::sregex_iterator match(line.begin(), line.end(), spilled), none; match != none;
         ++match) {
      faulty = faulty || (*match)[1] != "0";
    }
    if (faulty) faults.push_back(line);
  }
  if (kernel.facts.stack_bytes > 0 || kernel.facts.local_instructions > 0) {
    faults.push_back(fmt::format("{} bytes of local memory a thread, {} instructions on it",
                                 kernel.facts.stack_bytes, kernel.facts.local_instructions));
  }
  return faults;
}

}  // namespace tilewright::cuda
