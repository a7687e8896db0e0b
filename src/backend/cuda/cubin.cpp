// src/backend/cuda/cubin.cpp: reads a compiled kernel's registers, stack and shared memory from its
// ELF image.
#include "backend/cuda/cubin.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

namespace tilewright::cuda {
namespace {

// Attributes of the .nv.info section: a format byte, an attribute byte, a size or value of 16 bits,
// and for kSized a payload, which here is a symbol's index and a value.
constexpr unsigned char kSized = 4;
constexpr unsigned char kFrameSize = 0x11;
constexpr unsigned char kRegisterCount = 0x2f;

// A kernel's shared-memory section begins with what the system reserves for every block.
constexpr std::uint64_t kReservedSharedBytes = 1024;

// Machine code of compute capability 9.0: an instruction is 16 bytes, its operation in the lowest 9
// bits (nvdisasm --print-instruction-encoding shows them).
constexpr std::size_t kInstructionBytes = 16;
constexpr std::uint64_t kOperationMask = 0x1ff;
constexpr std::uint64_t kMatrixProduct = 0x1f0;
constexpr std::uint64_t kLocalLoad = 0x183;
constexpr std::uint64_t kLocalStore = 0x187;

template <typename T>
std::optional<T> read_at(std::string_view image, std::size_t offset) {
  if (offset > image.size() || image.size() - offset < sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, image.data() + offset, sizeof(T));
  return value;
}

Status damaged(const char* what) {
  return {StatusCode::io_error, std::string("cubin: ") + what};
}

class Image {
 public:
  static std::optional<Image> open(std::string_view bytes) {
    const auto header = read_at<Elf64_Ehdr>(bytes, 0);
    if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) return std::nullopt;
    Image image;
    image.bytes_ = bytes;
    for (int index = 0; index < header->e_shnum; ++index) {
      const auto section = read_at<Elf64_Shdr>(bytes, header->e_shoff + index * sizeof(Elf64_Shdr));
      if (!section) return std::nullopt;
      image.sections_.push_back(*section);
    }
    if (header->e_shstrndx >= image.sections_.size()) return std::nullopt;
    image.names_ = image.contents(image.sections_[header->e_shstrndx]);
    return image;
  }

  std::string_view contents(const Elf64_Shdr& section) const {
    if (section.sh_type == SHT_NOBITS || section.sh_offset > bytes_.size()) return {};
    return bytes_.substr(section.sh_offset, section.sh_size);
  }

  const Elf64_Shdr* find(const std::string& name) const {
    for (const Elf64_Shdr& section : sections_) {
      if (text(names_, section.sh_name) == name) return &section;
    }
    return nullptr;
  }

  /// The symbol-table index of the function `name`.
  std::optional<std::uint32_t> function_index(const std::string& name) const {
    const Elf64_Shdr* table = find(".symtab");
    if (!table || table->sh_link >= sections_.size()) return std::nullopt;
    const std::string_view names = contents(sections_[table->sh_link]);
    const std::string_view symbols = contents(*table);
    for (std::size_t index = 0; index * sizeof(Elf64_Sym) < symbols.size(); ++index) {
      const auto symbol = read_at<Elf64_Sym>(symbols, index * sizeof(Elf64_Sym));
      if (symbol && ELF64_ST_TYPE(symbol->st_info) == STT_FUNC &&
          text(names, symbol->st_name) == name) {
        return static_cast<std::uint32_t>(index);
      }
    }
    return std::nullopt;
  }

 private:
  static std::string_view text(std::string_view names, std::size_t offset) {
    if (offset >= names.size()) return {};
    return names.substr(offset, names.find('\0', offset) - offset);
  }

  std::string_view bytes_;
  std::string_view names_;
  std::vector<Elf64_Shdr> sections_;
};

}  // namespace

Result<CubinFacts> read_cubin(std::string_view bytes, const std::string& entry) {
  const std::optional<Image> image = Image::open(bytes);
  if (!image) return damaged("not an ELF image");
  const Elf64_Shdr* code = image->find(".text." + entry);
  const Elf64_Shdr* info = image->find(".nv.info");
  const std::optional<std::uint32_t> function = image->function_index(entry);
  if (!code || !info || !function)
    return Status(StatusCode::io_error, "cubin: no kernel '" + entry + "'");

  CubinFacts facts;
  facts.code_bytes = code->sh_size;
  if (const Elf64_Shdr* shared = image->find(".nv.shared." + entry)) {
    facts.static_shared_bytes =
        static_cast<int>(shared->sh_size - std::min(shared->sh_size, kReservedSharedBytes));
  }
  const std::string_view instructions = image->contents(*code);
  for (std::size_t at = 0; at + kInstructionBytes <= instructions.size(); at += kInstructionBytes) {
    const std::uint64_t operation = *read_at<std::uint64_t>(instructions, at) & kOperationMask;
    if (operation == kMatrixProduct) ++facts.matrix_instructions;
    if (operation == kLocalLoad || operation == kLocalStore) ++facts.local_instructions;
  }
  bool has_registers = false;
  bool has_stack = false;
  for (std::string_view rest = image->contents(*info); rest.size() >= 4;) {
    const auto format = static_cast<unsigned char>(rest[0]);
    const auto attribute = static_cast<unsigned char>(rest[1]);
    const std::size_t size = format == kSized ? *read_at<std::uint16_t>(rest, 2) : 0;
    const auto symbol = read_at<std::uint32_t>(rest, 4);
    const auto value = read_at<std::uint32_t>(rest, 8);
    if (size >= 8 && symbol && value && *symbol == *function) {
      if (attribute == kRegisterCount)
        facts.register_count = static_cast<int>(*value), has_registers = true;
      if (attribute == kFrameSize) facts.stack_bytes = static_cast<int>(*value), has_stack = true;
    }
    rest.remove_prefix(std::min(rest.size(), 4 + size));
  }
  if (!has_registers || !has_stack) return damaged("no register count or stack size");
  return facts;
}

}  // namespace tilewright::cuda
