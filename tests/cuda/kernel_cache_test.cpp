// tests/cuda/kernel_cache_test.cpp: Case16 and Case27, where kernels come from, and that capture
// never compiles.
#include "backend/cuda/kernel_cache.h"

#include <gtest/gtest.h>

#include <thread>

#include "tests/cuda/fake_driver.h"
#include "tests/cuda/fake_nvrtc.h"
#include "tests/cuda/scratch_folder.h"

namespace tilewright::cuda {
namespace {

namespace fs = std::filesystem;

KernelSource some_kernel(const std::string& name = "kernel") {
  KernelSource source;
  source.name = name;
  source.entry = "entry";
  source.file = "kernels/some.cu";
  source.generated_name = "some.inc";
  source.generated_text = name;
  source.dynamic_shared_bytes = 200000;
  source.threads = 384;
  return source;
}

class Case27_KernelCache : public testing::Test {
 protected:
  void SetUp() override {
    fake_driver().reset();
    fake_nvrtc().reset();
    fake_nvrtc().cubin = fake_cubin("entry", 168, 0, 0);
  }

  KernelCache::Parts parts(Result<KernelPack> pack = Status{StatusCode::unavailable, "no pack"}) {
    return {fake_driver_api(),
            [] { return open_fake_nvrtc(); },
            std::move(pack),
            DiskCache(scratch_.path() / "cache"),
            {},
            "digest"};
  }

  KernelPack pack_of(const std::vector<PackedKernel>& kernels) {
    const fs::path file = scratch_.path() / "a.pack";
    EXPECT_TRUE(write_pack(file, {"digest", std::string(kArchitecture), "13.5"}, kernels).ok());
    return *KernelPack::open(file);
  }

  ScratchFolder scratch_;
};

TEST_F(Case27_KernelCache, CompilesOnceAndKeepsItInMemory) {
  KernelCache cache(parts());
  const Result<LoadedKernel> first = cache.get(some_kernel(), false);
  ASSERT_TRUE(first.ok()) << first.status().message();
  EXPECT_EQ(first->origin, KernelOrigin::compiled);
  EXPECT_EQ(first->threads, 384);
  EXPECT_EQ(fake_driver().granted_shared_bytes.at(first->function), 200000);
  const Result<LoadedKernel> second = cache.get(some_kernel(), false);
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(second->function, first->function);
  EXPECT_EQ(fake_nvrtc().compilations, 1);
  EXPECT_EQ(fake_driver().loads, 1);
  EXPECT_EQ(fake_nvrtc().main_text, "#include \"kernels/some.cu\"\n");
}

TEST_F(Case27_KernelCache, NextProcessReadsTheDisk) {
  ASSERT_TRUE(KernelCache(parts()).get(some_kernel(), false).ok());
  KernelCache next(parts());
  const Result<LoadedKernel> kernel = next.get(some_kernel(), false);
  ASSERT_TRUE(kernel.ok());
  EXPECT_EQ(kernel->origin, KernelOrigin::disk);
  EXPECT_EQ(fake_nvrtc().compilations, 1);
}

TEST_F(Case27_KernelCache, OtherSourcesCompilersAndSpecialisationsDoNotShareEntries) {
  ASSERT_TRUE(KernelCache(parts()).get(some_kernel(), false).ok());
  KernelCache::Parts other_sources = parts();
  other_sources.source_digest = "changed";
  EXPECT_EQ(KernelCache(std::move(other_sources)).get(some_kernel(), false)->origin,
            KernelOrigin::compiled);
  KernelCache::Parts other_compiler = parts();
  other_compiler.nvrtc = [] { return open_fake_nvrtc({13, 6}); };
  EXPECT_EQ(KernelCache(std::move(other_compiler)).get(some_kernel(), false)->origin,
            KernelOrigin::compiled);
  KernelSource other_text = some_kernel();
  other_text.generated_text += " ";
  EXPECT_EQ(KernelCache(parts()).get(other_text, false)->origin, KernelOrigin::compiled);
}

TEST_F(Case27_KernelCache, PackComesBeforeDiskAndCompiler) {
  KernelCache cache(parts(pack_of({{some_kernel().key(), fake_cubin("entry", 168, 0, 0), {}}})));
  const Result<LoadedKernel> kernel = cache.get(some_kernel(), false);
  ASSERT_TRUE(kernel.ok()) << kernel.status().message();
  EXPECT_EQ(kernel->origin, KernelOrigin::pack);
  EXPECT_EQ(fake_nvrtc().compilations, 0);
  EXPECT_EQ(cache.get(some_kernel("not packed"), false)->origin, KernelOrigin::compiled);
}

TEST_F(Case27_KernelCache, PackThatTheDriverRefusesIsPassedOver) {
  KernelCache cache(parts(pack_of({{some_kernel().key(), "code of another time", {}}})));
  const Result<LoadedKernel> kernel = cache.get(some_kernel(), false);
  ASSERT_TRUE(kernel.ok()) << kernel.status().message();
  EXPECT_EQ(kernel->origin, KernelOrigin::compiled);
}

TEST_F(Case27_KernelCache, DamagedPackAndCacheAreCompiledAgain) {
  const KernelPack pack = pack_of({{some_kernel().key(), fake_cubin("entry", 168, 0, 0), {}}});
  fs::resize_file(scratch_.path() / "a.pack", fs::file_size(scratch_.path() / "a.pack") - 1);
  ASSERT_EQ(KernelCache(parts(pack)).get(some_kernel(), false)->origin, KernelOrigin::compiled);
  for (const auto& entry : DiskCache(scratch_.path() / "cache").list())
    fs::resize_file(entry.file, 40);
  ASSERT_EQ(KernelCache(parts(pack)).get(some_kernel(), false)->origin, KernelOrigin::compiled);
  EXPECT_EQ(fake_nvrtc().compilations, 2);
  EXPECT_EQ(KernelCache(parts(pack)).get(some_kernel(), false)->origin, KernelOrigin::disk);
}

TEST_F(Case27_KernelCache, UnwritableFolderIsNoFault) {
  write_bytes(scratch_.path() / "cache", "a file where the folder should be");
  EXPECT_EQ(KernelCache(parts()).get(some_kernel(), false)->origin, KernelOrigin::compiled);
}

TEST_F(Case27_KernelCache, WithoutPackAndCompilerSaysWhatIsMissing) {
  KernelCache::Parts bare = parts();
  bare.nvrtc = []() -> Result<Nvrtc> {
    return Status{StatusCode::unavailable, "no compiler here"};
  };
  const Result<LoadedKernel> kernel =
      KernelCache(std::move(bare)).get(some_kernel("the kernel"), false);
  ASSERT_FALSE(kernel.ok());
  EXPECT_EQ(kernel.status().code(), StatusCode::unavailable);
  for (const char* part : {"the kernel", "no compiler here", "no pack"}) {
    EXPECT_NE(kernel.status().message().find(part), std::string::npos) << kernel.status().message();
  }
}

TEST_F(Case27_KernelCache, CompilerErrorsCarryTheLog) {
  fake_nvrtc().compile_result = NvrtcResult::compilation;
  fake_nvrtc().log = "some.cu(1): error: no";
  const Result<LoadedKernel> kernel = KernelCache(parts()).get(some_kernel(), false);
  ASSERT_FALSE(kernel.ok());
  EXPECT_NE(kernel.status().message().find("some.cu(1): error: no"), std::string::npos);
}

TEST_F(Case27_KernelCache, FailureIsNotRemembered) {
  KernelCache cache(parts());
  fake_nvrtc().compile_result = NvrtcResult::out_of_memory;
  EXPECT_FALSE(cache.get(some_kernel(), false).ok());
  fake_nvrtc().compile_result = NvrtcResult::success;
  EXPECT_TRUE(cache.get(some_kernel(), false).ok());
}

TEST_F(Case27_KernelCache, EntryThatIsNotInTheCodeIsUnloadedAndReported) {
  KernelSource source = some_kernel();
  source.entry = "absent";
  fake_nvrtc().cubin = fake_cubin("absent", 168, 0, 0);
  const Result<LoadedKernel> kernel = KernelCache(parts()).get(source, false);
  ASSERT_FALSE(kernel.ok());
  EXPECT_NE(kernel.status().message().find("'absent'"), std::string::npos);
  EXPECT_EQ(fake_driver().unloads, fake_driver().loads);
}

TEST_F(Case27_KernelCache, ThreadsShareOneCompilation) {
  KernelCache cache(parts());
  std::vector<std::thread> threads;
  std::atomic<int> failures{0};
  for (int thread = 0; thread < 8; ++thread) {
    threads.emplace_back([&, thread] {
      for (int turn = 0; turn < 20; ++turn) {
        if (!cache.get(some_kernel("kernel " + std::to_string((thread + turn) % 4)), false).ok())
          ++failures;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures, 0);
  EXPECT_EQ(fake_nvrtc().compilations, 4);
}

TEST_F(Case27_KernelCache, EachContextGetsItsOwnFunction) {
  KernelCache cache(parts());
  const FunctionHandle first = cache.get(some_kernel(), false)->function;
  fake_driver().current_context = 2;
  const FunctionHandle second = cache.get(some_kernel(), false)->function;
  EXPECT_NE(first, second);
  EXPECT_EQ(fake_driver().granted_shared_bytes.at(second), 200000);
  EXPECT_EQ(fake_driver().loads, 1);
  fake_driver().current_context = 1;
  EXPECT_EQ(cache.get(some_kernel(), false)->function, first);
}

TEST_F(Case27_KernelCache, NoCurrentContextIsTheCallersError) {
  fake_driver().current_context = 0;
  const Result<LoadedKernel> kernel = KernelCache(parts()).get(some_kernel(), false);
  ASSERT_FALSE(kernel.ok());
  EXPECT_EQ(kernel.status().code(), StatusCode::invalid_argument);
}

TEST_F(Case27_KernelCache, Case16_CaptureNeverLoadsOrCompiles) {
  KernelCache cache(parts());
  const Result<LoadedKernel> refused = cache.get(some_kernel("the kernel"), true);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), StatusCode::not_prepared);
  EXPECT_NE(refused.status().message().find("the kernel"), std::string::npos);
  EXPECT_EQ(fake_nvrtc().compilations, 0);
  EXPECT_EQ(fake_driver().loads, 0);
  ASSERT_TRUE(cache.get(some_kernel("the kernel"), false).ok());
  EXPECT_TRUE(cache.get(some_kernel("the kernel"), true).ok());
  fake_driver().current_context = 2;
  EXPECT_EQ(cache.get(some_kernel("the kernel"), true).status().code(), StatusCode::not_prepared)
      << "prepared in another context";
}

}  // namespace
}  // namespace tilewright::cuda
