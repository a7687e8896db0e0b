// tests/cuda/kernel_pack_test.cpp: Case27, the shipped pack, whole and damaged.
#include "backend/cuda/kernel_pack.h"

#include <gtest/gtest.h>

#include "backend/cuda/compiler.h"
#include "tests/cuda/scratch_folder.h"

namespace tilewright::cuda {
namespace {

namespace fs = std::filesystem;

const PackHeader kHeader{"digest", std::string(kArchitecture), "13.5"};

std::vector<PackedKernel> some_kernels() {
  return {{"first", "cubin one", {168, 0, 16, 4096}}, {"second", std::string("cubin\0two", 9), {}}};
}

TEST(Case27_KernelPack, ReturnsEveryKernelAndItsFacts) {
  const ScratchFolder scratch;
  const fs::path file = scratch.path() / "a.pack";
  const Result<std::uint64_t> bytes = write_pack(file, kHeader, some_kernels());
  ASSERT_TRUE(bytes.ok()) << bytes.status().message();
  EXPECT_EQ(*bytes, fs::file_size(file));
  const Result<KernelPack> pack = KernelPack::open(file);
  ASSERT_TRUE(pack.ok()) << pack.status().message();
  EXPECT_EQ(pack->header().source_digest, "digest");
  EXPECT_EQ(pack->header().compiler_version, "13.5");
  for (const PackedKernel& kernel : some_kernels()) {
    const Result<std::optional<std::string>> cubin = pack->load(kernel.key);
    ASSERT_TRUE(cubin.ok());
    EXPECT_EQ(*cubin, kernel.cubin);
  }
  const KernelPack::Entry& entry = pack->entries().at("first");
  EXPECT_EQ(entry.facts.register_count, 168);
  EXPECT_EQ(entry.facts.static_shared_bytes, 16);
  EXPECT_EQ(entry.facts.code_bytes, 4096u);
  const Result<std::optional<std::string>> absent = pack->load("third");
  ASSERT_TRUE(absent.ok());
  EXPECT_FALSE(absent->has_value());
}

TEST(Case27_KernelPack, NoTruncationOrFlippedByteHandsOutAWrongKernel) {
  const ScratchFolder scratch;
  const fs::path file = scratch.path() / "a.pack";
  ASSERT_TRUE(write_pack(file, kHeader, some_kernels()).ok());
  const std::string whole = read_bytes(file);
  const auto faults_seen = [&](const std::string& damaged) {
    write_bytes(file, damaged);
    const Result<KernelPack> pack = KernelPack::open(file);
    if (!pack.ok()) return 1;
    int faults = 0;
    for (const PackedKernel& kernel : some_kernels()) {
      const Result<std::optional<std::string>> cubin = pack->load(kernel.key);
      if (!cubin.ok() || !cubin->has_value()) {
        ++faults;
      } else {
        EXPECT_EQ(**cubin, kernel.cubin);
      }
    }
    return faults;
  };
  for (std::size_t size = 0; size < whole.size(); ++size) {
    ASSERT_GT(faults_seen(whole.substr(0, size)), 0) << "truncated to " << size;
  }
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x04);
    ASSERT_GT(faults_seen(damaged), 0) << "byte " << at;
  }
}

TEST(Case27_KernelPack, OfOtherSourcesIsRefusedWithBothDigests) {
  const ScratchFolder scratch;
  const fs::path file = scratch.path() / "a.pack";
  ASSERT_TRUE(write_pack(file, kHeader, some_kernels()).ok());
  EXPECT_TRUE(KernelPack::find({scratch.path() / "absent.pack", file}, "digest").ok());
  const Result<KernelPack> pack = KernelPack::find({file}, "other");
  ASSERT_FALSE(pack.ok());
  EXPECT_EQ(pack.status().code(), StatusCode::unavailable);
  EXPECT_NE(pack.status().message().find("digest"), std::string::npos);
  EXPECT_NE(pack.status().message().find("other"), std::string::npos);
}

TEST(Case27_KernelPack, AbsenceNamesThePlacesSearched) {
  const Result<KernelPack> pack = KernelPack::find({"/nowhere/a.pack", "/nor/here.pack"}, "digest");
  ASSERT_FALSE(pack.ok());
  EXPECT_NE(pack.status().message().find("/nowhere/a.pack"), std::string::npos);
  EXPECT_NE(pack.status().message().find("/nor/here.pack"), std::string::npos);
}

TEST(Case27_KernelPack, FolderThatCannotBeWrittenIsAnError) {
  EXPECT_EQ(write_pack("/proc/a.pack", kHeader, some_kernels()).status().code(),
            StatusCode::io_error);
}

}  // namespace
}  // namespace tilewright::cuda
