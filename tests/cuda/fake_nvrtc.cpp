// tests/cuda/fake_nvrtc.cpp: a compiler whose machine code is a copy of a real, tiny one; counts
// its compilations.
#include "tests/cuda/fake_nvrtc.h"

#include <elf.h>

#include <cstring>
#include <mutex>

namespace tilewright::cuda {
namespace {

using R = NvrtcResult;

// Kernels may be compiled by several threads at once; what the fake remembers is of any one of
// them.
std::mutex& remembering() {
  static std::mutex mutex;
  return mutex;
}

const char* get_error_string(R) {
  return "NVRTC_ERROR_FAKE";
}
R version(int* major, int* minor) {
  return *major = 13, *minor = 5, R::success;
}
R create_program(NvrtcProgram* program, const char* source, const char*, int, const char* const*,
                 const char* const*) {
  const std::lock_guard lock(remembering());
  fake_nvrtc().main_text = source;
  return *program = reinterpret_cast<NvrtcProgram>(8), R::success;
}
R destroy_program(NvrtcProgram* program) {
  return *program = nullptr, R::success;
}
R compile_program(NvrtcProgram, int count, const char* const* options) {
  const std::lock_guard lock(remembering());
  fake_nvrtc().options.assign(options, options + count);
  return ++fake_nvrtc().compilations, fake_nvrtc().compile_result;
}
R get_log_size(NvrtcProgram, std::size_t* bytes) {
  return *bytes = fake_nvrtc().log.size() + 1, R::success;
}
R get_log(NvrtcProgram, char* log) {
  return std::strcpy(log, fake_nvrtc().log.c_str()), R::success;
}
R get_cubin_size(NvrtcProgram, std::size_t* bytes) {
  return *bytes = fake_nvrtc().cubin.size(), R::success;
}
R get_cubin(NvrtcProgram, char* cubin) {
  return std::memcpy(cubin, fake_nvrtc().cubin.data(), fake_nvrtc().cubin.size()), R::success;
}

template <typename T>
void append(std::string& bytes, const T& value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

}  // namespace

void FakeNvrtc::reset() {
  compilations = 0;
  compile_result = NvrtcResult::success;
  log.clear();
  cubin.clear();
}

FakeNvrtc& fake_nvrtc() {
  static FakeNvrtc fake;
  return fake;
}

Nvrtc open_fake_nvrtc(NvrtcVersion which) {
  Nvrtc nvrtc;
  nvrtc.version = which;
  nvrtc.path = "fake";
  nvrtc.api = {get_error_string, version, create_program, destroy_program, compile_program,
               get_log_size,     get_log, get_cubin_size, get_cubin};
  return nvrtc;
}

std::string fake_cubin(const std::string& entry, unsigned registers, unsigned stack_bytes,
                       unsigned shared_bytes) {
  // Sections: 0 none, 1 names, 2 symbols, 3 .nv.info, 4 code, 5 shared memory.
  std::string names(1, '\0');
  const auto name_of = [&](const std::string& text) {
    const auto at = static_cast<Elf64_Word>(names.size());
    names += text + '\0';
    return at;
  };
  Elf64_Shdr sections[6] = {};
  sections[1].sh_name = name_of(".shstrtab");
  sections[2].sh_name = name_of(".symtab");
  sections[3].sh_name = name_of(".nv.info");
  sections[4].sh_name = name_of(".text." + entry);
  sections[5].sh_name = name_of(".nv.shared." + entry);
  Elf64_Sym symbols[2] = {};
  symbols[1].st_name = name_of(entry);
  symbols[1].st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
  std::string info;
  const auto attribute = [&](unsigned char which, unsigned value) {
    info += {4, static_cast<char>(which), 8, 0};
    append(info, 1u);
    append(info, value);
  };
  attribute(0x2f, registers);
  attribute(0x11, stack_bytes);

  std::string body(sizeof(Elf64_Ehdr), '\0');
  const auto place = [&](int section, std::string_view bytes, Elf64_Word type) {
    sections[section].sh_type = type;
    sections[section].sh_offset = body.size();
    sections[section].sh_size = bytes.size();
    body += bytes;
  };
  place(1, names, SHT_STRTAB);
  place(2, {reinterpret_cast<const char*>(symbols), sizeof symbols}, SHT_SYMTAB);
  sections[2].sh_link = 1;
  place(3, info, SHT_LOPROC);
  place(4, std::string(64, '\1'), SHT_PROGBITS);
  sections[5].sh_type = SHT_NOBITS;
  sections[5].sh_size = shared_bytes;
  Elf64_Ehdr header = {};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_shoff = body.size();
  header.e_shnum = 6;
  header.e_shstrndx = 1;
  std::memcpy(body.data(), &header, sizeof header);
  body.append(reinterpret_cast<const char*>(sections), sizeof sections);
  return body;
}

}  // namespace tilewright::cuda
