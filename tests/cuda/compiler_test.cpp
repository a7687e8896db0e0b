// tests/cuda/compiler_test.cpp: the judgement of compiled kernels, on made-up logs and on the real
// compiler where it is found.
#include "backend/cuda/compiler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <sstream>
#include <thread>

#include "backend/cuda/hopper_forward.h"
#include "backend/cuda/pack_builder.h"
#include "backend/cuda/packed_kernels.h"
#include "tests/cuda/fake_nvrtc.h"

namespace tilewright::cuda {
namespace {

TEST(Cubin, ReadsRegistersStackAndSharedMemory) {
  const Result<CubinFacts> facts = read_cubin(fake_cubin("entry", 168, 24, 2048), "entry");
  ASSERT_TRUE(facts.ok()) << facts.status().message();
  EXPECT_EQ(facts->register_count, 168);
  EXPECT_EQ(facts->stack_bytes, 24);
  EXPECT_EQ(facts->static_shared_bytes, 1024);
  EXPECT_EQ(facts->code_bytes, 64u);
  EXPECT_FALSE(read_cubin(fake_cubin("entry", 1, 0, 0), "other").ok());
}

TEST(Cubin, DamagedImagesAreErrorsNeverCrashes) {
  const std::string whole = fake_cubin("entry", 168, 24, 2048);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(read_cubin(std::string(whole, 0, size), "entry").ok()) << size;
  }
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(0xff);
    (void)read_cubin(damaged, "entry").ok();  // Any answer will do; a sanitizer watches the reads.
  }
}

TEST(PerformanceFaults, NamesSerialisationSpillsAndLocalMemoryOnly) {
  CompiledKernel kernel;
  kernel.log =
      "ptxas info    : Compiling entry function 'k' for 'sm_90a'\n"
      "ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n";
  EXPECT_TRUE(performance_faults(kernel).empty());
  for (const char* line :
       {"ptxas info    : (C7508) Potential Performance Loss: 'setmaxnreg' ignored",
        "ptxas info    : (C7510) Potential Performance Loss: wgmma serialized",
        "ptxas info    : (C7515) something",
        "ptxas         .     8 bytes stack frame, 4 bytes spill stores, 0 bytes spill loads",
        "ptxas         .     8 bytes stack frame, 0 bytes spill stores, 12 bytes spill loads"}) {
    CompiledKernel faulty = kernel;
    faulty.log += line;
    EXPECT_EQ(performance_faults(faulty), std::vector<std::string>{line});
  }
  kernel.facts.stack_bytes = 16;
  ASSERT_EQ(performance_faults(kernel).size(), 1u);
  EXPECT_EQ(performance_faults(kernel)[0],
            "16 bytes of local memory a thread, 0 instructions on it");
}

TEST(Compile, TakesNothingFromTheCompilersOwnCacheWhereItHasOne) {
  fake_nvrtc().reset();
  fake_nvrtc().cubin = fake_cubin("k", 32, 0, 0);
  KernelSource source;
  source.entry = "k";
  const auto uncached = [&](NvrtcVersion version) {
    EXPECT_TRUE(compile(open_fake_nvrtc(version), source, {}).ok());
    const std::vector<std::string>& options = fake_nvrtc().options;
    return std::find(options.begin(), options.end(), "--no-cache") != options.end();
  };
  EXPECT_TRUE(uncached({13, 5}));
  EXPECT_TRUE(uncached({12, 9}));
  EXPECT_FALSE(uncached({12, 8})) << "an option that it does not know";
}

// The compiler that the build found must work; without one, any that the library finds, or none.
#ifdef TILEWRIGHT_NVRTC_FOLDER
constexpr const char* kNvrtcFolder = TILEWRIGHT_NVRTC_FOLDER;
#else
constexpr const char* kNvrtcFolder = "";
#endif

#ifdef TILEWRIGHT_SANITIZED
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

const Result<Nvrtc>& compiler() {
  static const Result<Nvrtc> opened =
      *kNvrtcFolder ? open_newest_nvrtc(nvrtc_files_in(kNvrtcFolder)) : nvrtc();
  return opened;
}

class RealCompiler : public testing::Test {
 protected:
  void SetUp() override {
    if (kSanitized) GTEST_SKIP() << "the compiler is not ours to sanitize";
    if (compiler().ok()) return;
    if (*kNvrtcFolder) FAIL() << compiler().status().message();
    GTEST_SKIP() << compiler().status().message();
  }

  static Result<CompiledKernel> compile_text(std::string_view text) {
    KernelSource source;
    source.name = "test kernel";
    source.entry = "k";
    source.file = "kernels/test.cu";
    const EmbeddedFile files[] = {{"kernels/test.cu", text}};
    return compile(*compiler(), source, files);
  }
};

TEST_F(RealCompiler, FactsOfTheImageAgreeWithTheLog) {
  const Result<CompiledKernel> kernel = compile_text(R"(
extern "C" __global__ void k(float* x) {
  __shared__ float s[300];
  s[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  x[threadIdx.x] = s[threadIdx.x ^ 1];
})");
  ASSERT_TRUE(kernel.ok()) << kernel.status().message();
  std::ostringstream used;
  used << "Used " << kernel->facts.register_count << " registers";
  EXPECT_NE(kernel->log.find(used.str()), std::string::npos) << kernel->log;
  EXPECT_EQ(kernel->facts.static_shared_bytes, 1200);
  EXPECT_EQ(kernel->facts.stack_bytes, 0);
  EXPECT_TRUE(performance_faults(*kernel).empty());
}

TEST_F(RealCompiler, PlantedLocalMemoryIsAFault) {
  const Result<CompiledKernel> kernel = compile_text(R"(
extern "C" __global__ void k(float* x, int at) {
  float local[64];
  for (int i = 0; i < 64; ++i) local[i] = x[i * 2];
  for (int i = 0; i < 64; ++i) local[(at * i) & 63] += x[i];
  x[threadIdx.x] = local[at & 63];
})");
  ASSERT_TRUE(kernel.ok()) << kernel.status().message();
  EXPECT_GT(kernel->facts.stack_bytes, 0);
  EXPECT_GT(kernel->facts.local_instructions, 0);
  EXPECT_EQ(kernel->facts.matrix_instructions, 0);
  EXPECT_FALSE(performance_faults(*kernel).empty());
}

TEST_F(RealCompiler, PlantedSpillIsAFault) {
  const Result<CompiledKernel> kernel = compile_text(R"(
extern "C" __global__ void __launch_bounds__(1024, 2) k(float* x) {
  float v[64];
  for (int i = 0; i < 64; ++i) v[i] = x[threadIdx.x + 1024 * i];
  __syncthreads();
  float sum = 0;
  for (int j = 0; j < 64; ++j)
    for (int i = 0; i < 64; ++i) sum += v[i] * v[(i + j) & 63] * x[j];
  x[threadIdx.x] = sum;
})");
  ASSERT_TRUE(kernel.ok()) << kernel.status().message();
  EXPECT_FALSE(performance_faults(*kernel).empty()) << kernel->log;
}

TEST_F(RealCompiler, PlantedSerialisedMatrixInstructionIsAFault) {
  // The accumulator is touched between issue and wait.
  const Result<CompiledKernel> kernel = compile_text(R"(
extern "C" __global__ void __launch_bounds__(128) k(float* x, unsigned long long a, unsigned long long b) {
  float d[4] = {};
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%0,%1,%2,%3}, %4, %5, 1, 1, 1, 0, 0;"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(a), "l"(b));
  d[0] += 1;
  asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%0,%1,%2,%3}, %4, %5, 1, 1, 1, 0, 0;"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(a), "l"(b));
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  for (int i = 0; i < 4; ++i) x[threadIdx.x * 4 + i] = d[i];
})");
  ASSERT_TRUE(kernel.ok()) << kernel.status().message();
  EXPECT_EQ(kernel->facts.matrix_instructions, 2);
  EXPECT_FALSE(performance_faults(*kernel).empty()) << kernel->log;
}

TEST_F(RealCompiler, EveryEmbeddedKernelCompilesWithoutFaults) {
  // One kernel of each kind here; the build compiles and judges every one that is packed.
  for (const KernelSource& source : {packed_kernels().front(), packed_kernels().back()}) {
    const Result<CompiledKernel> kernel = compile(*compiler(), source, embedded_files());
    ASSERT_TRUE(kernel.ok()) << kernel.status().message();
    EXPECT_EQ(performance_faults(*kernel), std::vector<std::string>{}) << source.name;
    EXPECT_EQ(plan_faults(source, kernel->facts), std::vector<std::string>{}) << source.name;
  }
}

// The build judges what is shipped. Of the rest, one kernel for each head dim, mask, softcap and
// ALiBi, with the copies and outputs that need the most registers.
TEST_F(RealCompiler, RareFeaturesSpillNothingEither) {
  const auto shipped = packed_specialisations();
  std::vector<schedule::HopperForwardSpecialisation> rare;
  for (const auto& s : packed_specialisations(PackScope::every_feature)) {
    const bool dearest = s.copy_producer && s.f32_output &&
                         (s.element == schedule::HopperElement::f16) == (s.qk_dim % 128 == 0);
    if (!dearest || std::find(shipped.begin(), shipped.end(), s) != shipped.end()) continue;
    rare.push_back(s);
  }
  EXPECT_GT(rare.size(), 30u);
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  const auto work = [&] {
    for (std::size_t i = next++; i < rare.size(); i = next++) {
      const KernelSource source = hopper_forward_source(rare[i]);
      const Result<CompiledKernel> kernel = compile(*compiler(), source, embedded_files());
      const std::lock_guard lock(mutex);
      ASSERT_TRUE(kernel.ok()) << kernel.status().message();
      EXPECT_EQ(performance_faults(*kernel), std::vector<std::string>{}) << source.name;
      EXPECT_EQ(plan_faults(source, kernel->facts), std::vector<std::string>{}) << source.name;
    }
  };
  std::thread other(work);
  work();
  other.join();
}

TEST_F(RealCompiler, ErrorsAreReportedWithTheSourcesName) {
  const Result<CompiledKernel> kernel = compile_text("this is not C++");
  ASSERT_FALSE(kernel.ok());
  EXPECT_NE(kernel.status().message().find("kernels/test.cu"), std::string::npos)
      << kernel.status().message();
}

}  // namespace
}  // namespace tilewright::cuda
