// tests/c_api/c_api_test.cpp: the C interface: defaults, versions of its structs, errors,
// executors.
#include <gtest/gtest.h>
#include <tilewright/c/tilewright.h>
#include <tilewright/tilewright.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace {

struct PlanDeleter {
  void operator()(tilewright_plan* plan) const { tilewright_plan_destroy(plan); }
};
using PlanHandle = std::unique_ptr<tilewright_plan, PlanDeleter>;

tilewright_attention_spec small_spec() {
  tilewright_attention_spec spec;
  tilewright_attention_spec_init(&spec);
  spec.heads = 4;
  spec.kv_heads = 2;
  spec.q_lengths.max_tokens = 40;
  spec.kv_lengths.max_tokens = 70;
  spec.qk_dim = 24;
  spec.causal = 1;
  return spec;
}

struct Buffers {
  std::vector<float> q = std::vector<float>(40 * 4 * 24);
  std::vector<float> k = std::vector<float>(70 * 2 * 24);
  std::vector<float> v = std::vector<float>(70 * 2 * 24);
  std::vector<float> o = std::vector<float>(40 * 4 * 24, std::numeric_limits<float>::quiet_NaN());
  std::vector<float> lse = std::vector<float>(4 * 40, std::numeric_limits<float>::quiet_NaN());

  Buffers() {
    float next = 0;
    for (auto* data : {&q, &k, &v}) {
      for (float& x : *data) x = std::sin(next += 0.7F);
    }
  }
  tilewright_tensors tensors() {
    tilewright_tensors t;
    tilewright_tensors_init(&t);
    t.q = q.data();
    t.k = k.data();
    t.v = v.data();
    t.o = o.data();
    t.lse = lse.data();
    return t;
  }
};

PlanHandle make_plan(const tilewright_attention_spec& spec,
                     const tilewright_plan_options* options = nullptr) {
  tilewright_plan* plan = nullptr;
  EXPECT_EQ(tilewright_plan_create(&spec, options, &plan), TILEWRIGHT_OK)
      << tilewright_error_text();
  return PlanHandle(plan);
}

TEST(CApi, AgreesWithCppBitForBit) {
  const tilewright_attention_spec c_spec = small_spec();
  Buffers c;
  const PlanHandle plan = make_plan(c_spec);
  const tilewright_tensors tensors = c.tensors();
  ASSERT_EQ(tilewright_run(plan.get(), &tensors, nullptr), TILEWRIGHT_OK)
      << tilewright_error_text();

  tilewright::AttentionSpec spec;
  spec.heads = 4;
  spec.kv_heads = 2;
  spec.q_lengths.max_tokens = 40;
  spec.kv_lengths.max_tokens = 70;
  spec.qk_dim = 24;
  spec.mask.causal = true;
  Buffers cpp;
  const tilewright::Status status = tilewright::attention(spec, {.q = cpp.q.data(),
                                                                 .k = cpp.k.data(),
                                                                 .v = cpp.v.data(),
                                                                 .o = cpp.o.data(),
                                                                 .lse = cpp.lse.data()});
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(std::memcmp(c.o.data(), cpp.o.data(), c.o.size() * sizeof(float)), 0);
  EXPECT_EQ(std::memcmp(c.lse.data(), cpp.lse.data(), c.lse.size() * sizeof(float)), 0);
}

TEST(CApi, PrintsItsPlan) {
  const PlanHandle plan = make_plan(small_spec());
  EXPECT_NE(std::string(tilewright_plan_text(plan.get())), "");
  EXPECT_EQ(tilewright_plan_json(plan.get())[0], '{');
  EXPECT_STREQ(tilewright_plan_text(nullptr), "");
  EXPECT_EQ(tilewright_plan_workspace_bytes(nullptr), 0U);
  tilewright_plan_destroy(nullptr);
}

TEST(CApi, ErrorsNameFieldValueAndWhatIsAccepted) {
  tilewright_attention_spec spec = small_spec();
  spec.kv_heads = 3;
  auto* plan = reinterpret_cast<tilewright_plan*>(1);
  EXPECT_EQ(tilewright_plan_create(&spec, nullptr, &plan), TILEWRIGHT_INVALID_ARGUMENT);
  EXPECT_EQ(plan, nullptr);
  const std::string message = tilewright_error_text();
  EXPECT_NE(message.find("kv_heads is 3"), std::string::npos) << message;
  EXPECT_NE(message.find("accepted"), std::string::npos) << message;
  EXPECT_STREQ(tilewright_status_text(TILEWRIGHT_INVALID_ARGUMENT), "invalid argument");
  EXPECT_STREQ(tilewright_status_text(static_cast<tilewright_status>(15)), "unknown");
}

TEST(CApi, ErrorTextBelongsToTheThread) {
  tilewright_attention_spec spec = small_spec();
  spec.qk_dim = 0;
  tilewright_plan* plan = nullptr;
  EXPECT_EQ(tilewright_plan_create(&spec, nullptr, &plan), TILEWRIGHT_INVALID_ARGUMENT);
  const std::string mine = tilewright_error_text();
  std::string theirs = "not set";
  std::thread([&] { theirs = tilewright_error_text(); }).join();
  EXPECT_EQ(theirs, "");
  EXPECT_EQ(tilewright_error_text(), mine);
}

TEST(CApi, RefusesNullsAndImpossibleEnumerators) {
  tilewright_plan* plan = nullptr;
  const tilewright_attention_spec good = small_spec();
  EXPECT_EQ(tilewright_plan_create(nullptr, nullptr, &plan), TILEWRIGHT_INVALID_ARGUMENT);
  EXPECT_EQ(tilewright_plan_create(&good, nullptr, nullptr), TILEWRIGHT_INVALID_ARGUMENT);
  EXPECT_EQ(tilewright_run(nullptr, nullptr, nullptr), TILEWRIGHT_INVALID_ARGUMENT);
  using Change = void (*)(tilewright_attention_spec&);
  for (const Change change : std::initializer_list<Change>{
           [](auto& s) { s.dtype = 77; }, [](auto& s) { s.dtype = 256; },
           [](auto& s) { s.o_dtype = -2; }, [](auto& s) { s.diagonal = 2; },
           [](auto& s) { s.q_lengths.kind = -1; }, [](auto& s) { s.kv_lengths.on_device = 9; },
           [](auto& s) { s.alibi = 3; }, [](auto& s) { s.sinks = -7; },
           [](auto& s) { s.bias_kind = 1000; }, [](auto& s) { s.window_left = -2; },
           [](auto& s) { s.softcap = -1; },
           [](auto& s) { s.scale = std::numeric_limits<double>::infinity(); },
           [](auto& s) { s.q.alignment_bytes = 3; }}) {
    tilewright_attention_spec spec = small_spec();
    change(spec);
    EXPECT_EQ(tilewright_plan_create(&spec, nullptr, &plan), TILEWRIGHT_INVALID_ARGUMENT);
    EXPECT_NE(std::string(tilewright_error_text()).find("accepted"), std::string::npos)
        << tilewright_error_text();
  }
}

TEST(CApi, RefusesWrongOptions) {
  const tilewright_attention_spec spec = small_spec();
  tilewright_plan* plan = nullptr;
  tilewright_plan_options options;
  tilewright_plan_options_init(&options);
  options.schedule = 3;
  EXPECT_EQ(tilewright_plan_create(&spec, &options, &plan), TILEWRIGHT_INVALID_ARGUMENT);
  tilewright_plan_options_init(&options);
  options.device = "no such device";
  EXPECT_EQ(tilewright_plan_create(&spec, &options, &plan), TILEWRIGHT_INVALID_ARGUMENT);
  EXPECT_NE(std::string(tilewright_error_text()).find("no such device"), std::string::npos);
  tilewright_plan_options_init(&options);
  options.struct_size = 3;
  EXPECT_EQ(tilewright_plan_create(&spec, &options, &plan), TILEWRIGHT_INVALID_ARGUMENT);
}

// A program built against an older, shorter struct: the rest keeps its defaults.
TEST(CApi, AcceptsAShorterStructFromAnOlderProgram) {
  tilewright_attention_spec spec = small_spec();
  spec.struct_size = offsetof(tilewright_attention_spec, alibi);
  spec.alibi = 99;  // beyond what the older program knows: not read
  const PlanHandle plan = make_plan(spec);
  EXPECT_NE(plan, nullptr);
}

// A program built against a newer, longer one: what this library does not know is not read.
TEST(CApi, AcceptsALongerStructFromANewerProgram) {
  struct Longer {
    tilewright_attention_spec spec;
    std::int64_t later[4];
  } longer{small_spec(), {1, 2, 3, 4}};
  longer.spec.struct_size = sizeof longer;
  EXPECT_NE(make_plan(longer.spec), nullptr);
}

TEST(CApi, LentWorkspaceIsCheckedAndUsed) {
  const PlanHandle plan = make_plan(small_spec());
  const std::size_t bytes = tilewright_plan_workspace_bytes(plan.get());
  Buffers buffers;
  const tilewright_tensors tensors = buffers.tensors();
  tilewright_run_options options;
  tilewright_run_options_init(&options);
  std::vector<unsigned char> memory(bytes + 192, 0xff);
  auto address = reinterpret_cast<std::uintptr_t>(memory.data());
  auto* aligned = memory.data() + (64 - address % 64) % 64;
  options.workspace = aligned;
  options.workspace_bytes = bytes;
  EXPECT_EQ(tilewright_run(plan.get(), &tensors, &options), TILEWRIGHT_OK)
      << tilewright_error_text();
  EXPECT_FALSE(std::isnan(buffers.o.back()));
  options.workspace = aligned + 4;
  EXPECT_EQ(tilewright_run(plan.get(), &tensors, &options), TILEWRIGHT_INVALID_ARGUMENT);
  if (bytes > 0) {
    options.workspace = aligned;
    options.workspace_bytes = bytes - 1;
    EXPECT_EQ(tilewright_run(plan.get(), &tensors, &options), TILEWRIGHT_INVALID_ARGUMENT);
  }
}

// An engine's own threads run the work, and give the same bits as ours.
TEST(CApi, RunsOnAnEnginesThreads) {
  Buffers ours;
  Buffers theirs;
  tilewright_plan_options plan_options;
  tilewright_plan_options_init(&plan_options);
  plan_options.workers = 3;
  const PlanHandle plan = make_plan(small_spec(), &plan_options);
  tilewright_tensors tensors = ours.tensors();
  ASSERT_EQ(tilewright_run(plan.get(), &tensors, nullptr), TILEWRIGHT_OK);

  std::atomic<int> calls = 0;
  tilewright_executor executor{};
  executor.context = &calls;
  executor.concurrency = 3;
  executor.run_workers = [](void* context, std::int64_t workers,
                            void (*work)(void* argument, std::int64_t worker), void* argument) {
    std::vector<std::thread> threads;
    for (std::int64_t worker = 0; worker < workers; ++worker) {
      threads.emplace_back([=] {
        ++*static_cast<std::atomic<int>*>(context);
        work(argument, worker);
      });
    }
    for (std::thread& thread : threads) thread.join();
  };
  tilewright_run_options options;
  tilewright_run_options_init(&options);
  options.executor = &executor;
  tensors = theirs.tensors();
  ASSERT_EQ(tilewright_run(plan.get(), &tensors, &options), TILEWRIGHT_OK)
      << tilewright_error_text();
  EXPECT_GT(calls.load(), 0);
  EXPECT_EQ(std::memcmp(ours.o.data(), theirs.o.data(), ours.o.size() * sizeof(float)), 0);

  executor.run_workers = nullptr;
  EXPECT_EQ(tilewright_run(plan.get(), &tensors, &options), TILEWRIGHT_INVALID_ARGUMENT);
}

TEST(CApi, ManyThreadsMayRunOnePlan) {
  const PlanHandle plan = make_plan(small_spec());
  std::vector<Buffers> buffers(4);
  std::vector<std::thread> threads;
  for (Buffers& mine : buffers) {
    threads.emplace_back([&mine, &plan] {
      const tilewright_tensors tensors = mine.tensors();
      EXPECT_EQ(tilewright_run(plan.get(), &tensors, nullptr), TILEWRIGHT_OK);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Buffers& mine : buffers) {
    EXPECT_EQ(std::memcmp(mine.o.data(), buffers[0].o.data(), mine.o.size() * sizeof(float)), 0);
  }
}

}  // namespace
