// tests/conformance/fence_test.cpp: no byte beyond a tensor is even read: tensors end, or begin,
// where the process's memory does.
//
// Poison shows what reaches a result; a load whose value is thrown away shows only here, as a fault
// that ends the program.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "conformance/check.h"
#include "reference/random_problem.h"
#include "support/scale.h"

namespace tilewright::conformance {
namespace {

enum class Fence { behind, before };

// Memory between two pages that must not be touched.
class FencedCopy {
 public:
  // Of the used bytes of a tensor, its address as aligned as promised.
  FencedCopy(const reference::Buffer& buffer, std::size_t alignment, Fence fence) {
    const auto first = std::find(buffer.used.begin(), buffer.used.end(), true);
    const auto last = std::find(buffer.used.rbegin(), buffer.used.rend(), true);
    const auto begin = static_cast<std::size_t>(first - buffer.used.begin());
    const auto end = static_cast<std::size_t>(last.base() - buffer.used.begin());
    bytes_ = end > begin ? end - begin : 0;
    const std::size_t page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    inside_ = (bytes_ + alignment + page - 1) / page * page;
    outside_ = page;
    memory_ = static_cast<char*>(
        mmap(nullptr, inside_ + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(memory_ + page, inside_, PROT_READ | PROT_WRITE);
    // origin_bytes may lie before or behind the used bytes: strides may be negative.
    const auto to_origin =
        static_cast<std::int64_t>(buffer.origin_bytes) - static_cast<std::int64_t>(begin);
    data_ = memory_ + page + (fence == Fence::behind ? inside_ - bytes_ : 0);
    const auto over = reinterpret_cast<std::uintptr_t>(data_ + to_origin) % alignment;
    data_ += fence == Fence::behind ? -static_cast<std::ptrdiff_t>(over)
                                    : static_cast<std::ptrdiff_t>((alignment - over) % alignment);
    address_ = data_ + to_origin;
    if (bytes_ > 0) std::memcpy(data_, buffer.data + begin, bytes_);
    begin_ = begin;
  }
  ~FencedCopy() { munmap(memory_, inside_ + 2 * outside_); }
  FencedCopy(const FencedCopy&) = delete;

  void* address() const { return address_; }
  HostBuffer host_buffer(bool output) const { return {data_, bytes_, output}; }

  // The used bytes go back to where they came from.
  void copy_back(const reference::Buffer& buffer) const {
    for (std::size_t i = 0; i < bytes_; ++i) {
      if (buffer.used[begin_ + i]) buffer.data[begin_ + i] = static_cast<std::byte>(data_[i]);
    }
  }

 private:
  std::size_t bytes_ = 0, inside_ = 0, outside_ = 0, begin_ = 0;
  char* memory_ = nullptr;
  char* data_ = nullptr;
  char* address_ = nullptr;
};

std::size_t alignment_of(const AttentionSpec& spec, TensorId id) {
  const auto promised = [](const Operand& operand) {
    return static_cast<std::size_t>(operand.alignment_bytes);
  };
  if (id == TensorId::q) return promised(spec.q);
  if (id == TensorId::k) return promised(spec.k);
  if (id == TensorId::v) return promised(spec.v);
  if (id == TensorId::o) return promised(spec.o);
  if (id != TensorId::bias) return 4;
  return spec.bias.kind == BiasKind::boolean ? 1 : size_bytes(spec.bias.dtype);
}

void expect_conforms_fenced(ProblemData& data, Fence fence) {
  const AttentionProblem& problem = data.problem();
  const auto rows = all_rows(problem, data.tensors());
  const auto expected = expected_rows(problem, data.tensors(), rows);
  for (const auto& variant : variants()) {
    if (variant->refuses(problem.spec())) continue;
    SCOPED_TRACE(variant->name() + ": " + to_text(data.what()));
    data.prepare_run();
    Call call{&problem, {}, {}};
    std::vector<std::unique_ptr<FencedCopy>> copies;
    void* addresses[reference::kTensorCount] = {};
    for (std::size_t i = 0; i < reference::kTensorCount; ++i) {
      const auto id = static_cast<TensorId>(i);
      copies.push_back(nullptr);
      if (!data.buffer(id).present()) continue;
      copies[i] =
          std::make_unique<FencedCopy>(data.buffer(id), alignment_of(problem.spec(), id), fence);
      addresses[i] = copies[i]->address();
      const bool output = id == TensorId::o || id == TensorId::lse;
      call.buffers.push_back(copies[i]->host_buffer(output));
    }
    const auto address = [&](TensorId id) { return addresses[static_cast<std::size_t>(id)]; };
    call.tensors.q = address(TensorId::q);
    call.tensors.k = address(TensorId::k);
    call.tensors.v = address(TensorId::v);
    call.tensors.o = address(TensorId::o);
    call.tensors.lse = static_cast<float*>(address(TensorId::lse));
    call.tensors.q_lengths = static_cast<const std::int32_t*>(address(TensorId::q_lengths));
    call.tensors.kv_lengths = static_cast<const std::int32_t*>(address(TensorId::kv_lengths));
    call.tensors.alibi_slopes = static_cast<const float*>(address(TensorId::alibi_slopes));
    call.tensors.sinks = static_cast<const float*>(address(TensorId::sinks));
    call.tensors.bias = address(TensorId::bias);
    const auto plan = variant->run(call, {});
    ASSERT_TRUE(plan.ok()) << plan.status().message();
    for (const TensorId id : {TensorId::o, TensorId::lse}) {
      copies[static_cast<std::size_t>(id)]->copy_back(data.buffer(id));
    }
    const auto result = compare(problem, data.tensors(), expected);
    EXPECT_TRUE(result.ok()) << to_text(result, *plan, data.what().seed);
  }
}

TEST(Fence, Case02_no_byte_outside_the_tensors_is_read_or_written) {
  reference::RandomLimits limits;
  limits.max_flops = 4e6;
  const std::uint64_t seed = test::first_seed(6000);
  for (std::int64_t i = 0; i < test::scaled(60); ++i) {
    ProblemData data = make(reference::random_case(seed + static_cast<std::uint64_t>(i), limits));
    expect_conforms_fenced(data, Fence::behind);
    expect_conforms_fenced(data, Fence::before);
  }
}

TEST(Fence, Case11_no_head_dim_reads_beyond_its_row) {
  for (std::int64_t dim = 1; dim <= 256; dim += 9) {
    for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
      Case what = fixed_case(3, 17, dtype);
      what.spec.qk_dim = dim;
      what.spec.v_dim = 257 - dim;
      ProblemData data = make(what);
      expect_conforms_fenced(data, Fence::behind);
    }
  }
}

// That the fence is where it should be: a read one byte beyond it ends the program.
TEST(FenceDeathTest, a_read_beyond_the_fence_is_fatal) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  ProblemData data = make(fixed_case(3, 5));
  const reference::Buffer& buffer = data.buffer(TensorId::k);
  const FencedCopy behind(buffer, 4, Fence::behind);
  const auto* k = static_cast<volatile const float*>(behind.address());
  EXPECT_EQ(k[5 * 64 - 1], static_cast<const float*>(buffer.address())[5 * 64 - 1]);
  EXPECT_DEATH((void)k[5 * 64], "");
  const FencedCopy before(buffer, 4, Fence::before);
  EXPECT_DEATH((void)static_cast<volatile const float*>(before.address())[-1], "");
}

}  // namespace
}  // namespace tilewright::conformance
