// tests/cuda/gpu_operand_test.cpp: P from registers and P from shared memory give the same bits of
// O.
//
// Some assemblers reuse the registers of an asynchronous matrix operand before it has been read
// (kTrustedNvrtc), which shows only in the numbers. So the kernel's own source is compiled a second
// time, its product P V rewritten to take P from shared memory, where that cannot happen.
#include "backend/cuda/hopper_forward.h"
#include "cuda/gpu_fixture.h"
#include "cuda/shared_operand_sources.h"

namespace tilewright::cuda {
namespace {

// The driver, granting and launching with the shared memory that P needs.
const DriverApi* the_driver = nullptr;
int extra_shared_bytes = 0;

DriverApi with_more_shared_memory(const DriverApi& api, const Tile& tile) {
  the_driver = &api;
  extra_shared_bytes = bytes_of_p(tile);
  DriverApi more = api;
  more.function_set_attribute = [](FunctionHandle function, FunctionAttribute which, int value) {
    return the_driver->function_set_attribute(function, which, value + extra_shared_bytes);
  };
  more.launch_kernel = [](FunctionHandle function, unsigned grid_x, unsigned grid_y,
                          unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z,
                          unsigned shared_bytes, StreamHandle stream, void** parameters,
                          void** extra) {
    return the_driver->launch_kernel(function, grid_x, grid_y, grid_z, block_x, block_y, block_z,
                                     shared_bytes + extra_shared_bytes, stream, parameters, extra);
  };
  return more;
}

class Operands : public Gpu {
 protected:
  void SetUp() override {
    Gpu::SetUp();
    if (HasFatalFailure()) return;
    if (!nvrtc().ok()) GTEST_SKIP() << nvrtc().status().message();
    RecordProperty("compiler", nvrtc()->version.text());
  }

  // O of the plan, its kernel compiled from these files.
  std::vector<std::uint16_t> output(const Plan& plan, const DriverApi& driver,
                                    std::span<const EmbeddedFile> files) {
    KernelCache cache({driver, [] { return nvrtc(); }, Status{StatusCode::unavailable, "not asked"},
                       DiskCache({}), files, "rewritten"});
    const AttentionSpec& spec = plan.problem.spec();
    const auto count =
        static_cast<std::size_t>(spec.q_lengths.max_tokens * spec.heads * spec.qk_dim);
    AttentionTensors tensors;
    tensors.q = to_device(random_bf16(count, 1));
    tensors.k = to_device(random_bf16(count, 2));
    tensors.v = to_device(random_bf16(count, 3));
    tensors.o = allocate(count * 2);
    fill(tensors.o, 0xff, count * 2);
    const Status status = run_hopper_forward({driver, cache}, plan, tensors, options_for(plan));
    EXPECT_TRUE(status.ok()) << status.message();
    return to_host(static_cast<const std::uint16_t*>(tensors.o), count);
  }
};

TEST_F(Operands, RegistersAndSharedMemoryGiveTheSameBits) {
  const SharedOperandSources rewritten("0u");
  // A bit of one probability, in the first row that a consumer's first thread holds.
  const SharedOperandSources flipped("(step == 0 && i == 0 && threadIdx.x == 128 ? 0x100u : 0u)");
  if (HasFatalFailure()) return;
  struct Shape {
    std::int64_t dim;
    Tile tile;
    bool causal;
  };
  for (const Shape& shape : {Shape{64, {192, 128}, true}, Shape{128, {128, 128}, false},
                             Shape{128, {128, 128}, true}, Shape{256, {128, 64}, true}}) {
    AttentionSpec spec;
    spec.heads = spec.kv_heads = 8;
    spec.qk_dim = shape.dim;
    spec.q_lengths.max_tokens = spec.kv_lengths.max_tokens = 3000;
    spec.mask.causal = shape.causal;
    const Plan plan = plan_of(spec, shape.tile);
    SCOPED_TRACE(to_text(plan));
    const DriverApi driver = with_more_shared_memory(api(), shape.tile);
    const auto from_registers = output(plan, api(), embedded_files());
    EXPECT_TRUE(output(plan, driver, rewritten.files) == from_registers);
    if (shape.dim == 64) {
      EXPECT_FALSE(output(plan, driver, flipped.files) == from_registers) << "a planted fault";
    }
  }
}

}  // namespace
}  // namespace tilewright::cuda
