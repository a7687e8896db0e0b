// tests/cli/refusal_test.cpp: what is wrong is refused with exit code 2, by flag, value and what is
// accepted; what fails later with exit code 1. Nothing is written either way.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "file_text.h"
#include "run_command.h"

namespace tilewright::test {
namespace {

class Refusal : public ::testing::Test {
 protected:
  Refusal() {
    f32("q", "(8, 4, 16)", 512);
    f32("k", "(8, 2, 16)", 256);
    f32("v", "(8, 2, 16)", 256);
  }

  std::string f32(const std::string& name, const char* shape, std::size_t count) {
    return folder_.write(name + ".npy", npy_f32(shape, std::vector<float>(count, 0.5f)));
  }
  std::string i32(const std::string& name, const std::vector<std::int32_t>& values) {
    return folder_.write(
        name + ".npy",
        npy_text(npy_dict("<i4", "(" + std::to_string(values.size()) + ",)"), bytes_of(values)));
  }

  // `run` on q, k and v unless `more` names others.
  std::vector<std::string> run(const std::vector<std::string>& more) const {
    std::vector<std::string> words = {"run"};
    for (const char* operand : {"q", "k", "v"}) {
      const std::string flag = std::string("--") + operand;
      if (std::find(more.begin(), more.end(), flag) != more.end()) continue;
      words.insert(words.end(), {flag, folder_.path(std::string(operand) + ".npy")});
    }
    if (std::find(more.begin(), more.end(), "--out") == more.end()) {
      words.insert(words.end(), {"--out", folder_.path("o.npy")});
    }
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }

  void expect_refused(std::vector<std::string> words, const std::vector<std::string>& message,
                      int exit_code = 2) const {
    std::string line;
    for (const std::string& word : words) line += word + " ";
    SCOPED_TRACE(line);
    const CommandResult plain = run_command(words);
    EXPECT_EQ(plain.exit_code, exit_code) << plain.err;
    EXPECT_EQ(plain.out, "");
    for (const std::string& word : message) {
      EXPECT_NE(plain.err.find(word), std::string::npos)
          << "no \"" << word << "\" in: " << plain.err;
    }
    // The same for machines.
    words.emplace_back("--json");
    const CommandResult machine = run_command(words);
    EXPECT_EQ(machine.exit_code, exit_code);
    const auto printed = nlohmann::json::parse(machine.out, nullptr, false);
    ASSERT_FALSE(printed.is_discarded()) << machine.out;
    EXPECT_FALSE(printed["error"]["message"].get<std::string>().empty());
    EXPECT_FALSE(std::filesystem::exists(folder_.path("o.npy")));
  }

  ScratchFolder folder_;
};

TEST_F(Refusal, LseAndTheReportReplaceNoFileOfTheRun) {
  expect_refused(run({"--lse", folder_.path("q.npy")}), {"--lse", "q.npy", "--q", "another file"});
  expect_refused(run({"--report", folder_.path("k.npy")}), {"--report", "--k", "another file"});
  expect_refused(run({"--report", folder_.path("o.npy")}), {"--report", "--out", "another file"});
}

TEST_F(Refusal, Case24_AGpuThatIsNotHereIsNeverReplacedByTheCpu) {
  if (void* driver = dlopen("libcuda.so.1", RTLD_NOW)) {
    dlclose(driver);
    GTEST_SKIP() << "this machine has a CUDA driver";
  }
  const std::vector<std::string> message = {"--device", "no usable CUDA driver", "libcuda.so.1",
                                            "install an NVIDIA driver", "'cpu'"};
  expect_refused(run({"--device", "cuda"}), message);
  expect_refused({"bench", "--device", "cuda"}, message);
  expect_refused({"verify", "--device", "cuda"}, message);
}

TEST_F(Refusal, Case29_FlagsNameTheirValueAndWhatIsAccepted) {
  for (const auto& [flag, value, accepted] : {
           std::tuple{"--threads", "0", "1 to 4096"},
           {"--threads", "two", "1 to 4096"},
           {"--threads", "99999999999999999999", "1 to 4096"},
           {"--causal", "yes", "bottom-right, top-left"},
           {"--layout", "sbhd", "bshd, bhsd"},
           {"--window", "3", "keys to the left"},
           {"--window", "-2,0", "keys to the left"},
           {"--window", "1,2,3", "keys to the left"},
           {"--scale", "nan", "finite"},
           {"--scale", "inf", "finite"},
           {"--scale", "1e999", "finite"},
           {"--scale", "1/8", "finite"},
           {"--softcap", "soft", "finite"},
           {"--tile", "64", "query rows x key rows"},
           {"--tile", "0x64", "query rows x key rows"},
           {"--tile", "64x-1", "query rows x key rows"},
           {"--schedule", "fast", "q_outer, kv_outer, standard"},
           {"--device", "tpu", "auto, cpu"},
           {"--out-dtype", "f64", "f32, bf16, f16"},
           {"--repeat", "0", "1 to"},
       }) {
    expect_refused(run({flag, value}), {flag, "'" + std::string(value) + "'", accepted});
  }
  expect_refused(run({"--softcap", "-1"}), {"softcap is -1", "accepted"});
  expect_refused(run({"--scale", "1e300"}), {"scale is 1e+300", "accepted"});
  expect_refused(run({"--out-dtype", "bf16"}), {"--out-dtype is bf16", "f32"});
  expect_refused(run({"--isa", "sse9"}), {"--isa is", "sse9", "accepted"});
  expect_refused(run({"--tile", "9000000x64"}), {"--tile's query rows is 9000000", "accepted"});
  expect_refused({"plan", "--tile", "8x9000000"}, {"--tile's key rows is 9000000", "accepted"});
}

TEST_F(Refusal, EmptyValues) {
  expect_refused(run({"--causal="}), {"--causal is ''", "accepted"});
  expect_refused(run({"--scale="}), {"--scale is ''", "accepted"});
  expect_refused(run({"--out", ""}), {"--out is ''", "accepted"});
  expect_refused({"plan", ""}, {"an argument is ''"});
}

TEST_F(Refusal, ProfilesThatAreNoFiles) {
  const std::string none = folder_.path("none.toml");
  expect_refused({"plan", "--device", none}, {"--device", "none.toml", "No such file"});
  const std::string empty = folder_.write("empty.toml", "");
  expect_refused({"plan", "--device", empty}, {"--device", "empty.toml", "empty", "profile"});
  std::filesystem::create_directory(folder_.path("folder.toml"));
  expect_refused({"sweep", "--device", folder_.path("folder.toml")}, {"--device", "not a file"});
}

TEST_F(Refusal, AnInputThatNothingWouldBeReadFrom) {
  const std::string path = folder_.write("x.safetensors", safetensors_text("{}", ""));
  expect_refused(run({"--input", path}), {"--input is", "x.safetensors", "nothing"});
}

TEST_F(Refusal, SchedulesAndDevicesThatAreNotHere) {
  expect_refused(run({"--schedule", "kv_outer"}), {"kv_outer", "accepted: q_outer, standard"});
  expect_refused({"bench", "--q-len", "8", "--against", "kv_outer"}, {"kv_outer", "standard"});
  expect_refused({"plan", "--device", "h2000"}, {"--device", "h2000", "h200"});
}

TEST_F(Refusal, WrongCommands) {
  expect_refused({}, {"subcommand is required"});
  expect_refused({"flash"}, {"'flash'", "run", "plan"});
  expect_refused({"run"}, {"--out"});
  expect_refused({"run", "--out", folder_.path("o.npy")}, {"--q is absent", "--input"});
  expect_refused(run({"--bogus"}), {"--bogus"});
  expect_refused(run({"stray"}), {"stray"});
  expect_refused(run({"--tile"}), {"--tile"});
  expect_refused({"plan", "--dim", "257"}, {"--dim", "'257'", "1 to 256"});
  expect_refused({"plan", "--heads", "6", "--kv-heads", "4"}, {"--kv-heads is 4", "divisor", "6"});
  expect_refused({"verify", "--count", "0"}, {"--count", "'0'"});
  expect_refused({"demo", "--lengths", "4,2"}, {"--lengths", "'4,2'", "growing"});
  expect_refused({"demo", "--keep", "/proc/none"}, {"--keep", "/proc/none"});
  expect_refused({"demo", "--keep", folder_.path("none/kept")}, {"--keep", "none/kept"});
  expect_refused({"demo", "--keep", folder_.path("q.npy")},
                 {"--keep", "q.npy", "accepted: a directory"});
  EXPECT_FALSE(std::filesystem::exists(folder_.path("none")));
}

TEST_F(Refusal, Case12_ATileThatDoesNotFitSaysWhatDoes) {
  expect_refused({"plan", "--tile", "65536x65536"}, {"65536x65536", "need"});
  expect_refused(run({"--tile", "65536x65536"}), {"65536x65536", "need"});
}

TEST_F(Refusal, ShapesThatDoNotAgree) {
  expect_refused(run({"--q", f32("q1", "(8,)", 8)}), {"--q", "q1.npy", "(8,)", "[tokens, dim]"});
  expect_refused(run({"--q", f32("q5", "(1, 1, 8, 4, 16)", 512)}), {"--q", "(1, 1, 8, 4, 16)"});
  expect_refused(run({"--q", f32("q0", "()", 1)}), {"--q", "()"});
  expect_refused(run({"--k", f32("k2", "(8, 16)", 128)}), {"--k", "(8, 16)", "3 axes"});
  expect_refused(run({"--k", f32("k3", "(8, 2, 8)", 128)}), {"--k", "head dim", "8", "16"});
  expect_refused(run({"--k", f32("k4", "(8, 3, 16)", 384), "--v", folder_.path("k4.npy")}),
                 {"kv_heads is 3", "4"});
  expect_refused(run({"--v", f32("v3", "(9, 2, 16)", 288)}), {"--v", "tokens", "9", "8"});
  expect_refused(run({"--v", f32("v4", "(8, 4, 16)", 512)}), {"--v", "heads", "4", "2"});
  expect_refused(run({"--v", f32("v5", "(8, 2, 0)", 0)}), {"--v", "head dim", "0", "1 to 256"});
  const std::string wide = f32("wide", "(1, 2, 257)", 514);
  expect_refused(run({"--q", wide, "--k", wide, "--v", wide}), {"qk_dim is 257", "1 to 256"});
  const std::string half =
      folder_.write("half.npy", npy_text(npy_dict("<f2", "(8, 2, 16)"), std::string(512, '\0')));
  expect_refused(run({"--k", half}), {"--k", "f16", "f32"});
  expect_refused(run({"--q", i32("ints", {1, 2})}), {"--q", "i32", "f32, bf16, f16"});
}

TEST_F(Refusal, SideInputsThatDoNotFit) {
  expect_refused(run({"--alibi", f32("a", "(3,)", 3)}), {"--alibi", "(3,)", "(4,)"});
  expect_refused(run({"--sink", f32("s", "(2, 4)", 8)}), {"--sink", "(2, 4)", "(1, 4)"});
  expect_refused(run({"--sink", i32("si", {1, 2, 3, 4})}), {"--sink", "i32"});
  expect_refused(run({"--bias", f32("b", "(8, 7)", 56)}), {"--bias", "(8, 7)", "(1, 4, 8, 8)"});
  expect_refused(run({"--bias", f32("b1", "(8,)", 8)}), {"--bias", "(8,)"});
  expect_refused(run({"--bias", i32("bi", {1})}), {"--bias", "i32", "bool"});
  expect_refused(run({"--q-lengths", i32("l2", {8, 8})}), {"--q-lengths", "2", "1, the batch"});
  expect_refused(run({"--q-lengths", i32("l9", {9})}), {"--q-lengths", "element 0 is 9", "0 to 8"});
  expect_refused(run({"--kv-lengths", i32("ln", {-1})}), {"--kv-lengths", "element 0 is -1"});
  expect_refused(run({"--q-lengths", f32("lf", "(1,)", 1)}), {"--q-lengths", "f32", "i32, i64"});
}

TEST_F(Refusal, OffsetsThatDoNotFit) {
  expect_refused(run({"--packed"}), {"--q-lengths is absent"});
  const auto packed = [&](const std::vector<std::int32_t>& offsets) {
    return run({"--packed", "--q-lengths", i32("offsets", offsets)});
  };
  expect_refused(packed({}), {"--q-lengths", "1 or more"});
  expect_refused(packed({1, 8}), {"--q-lengths", "element 0 is 1", "0"});
  expect_refused(packed({0, 5, 4, 8}), {"--q-lengths", "element 2 is 4", "5 or more"});
  expect_refused(packed({0, 9}), {"--q-lengths", "element 1 is 9", "0 to 8"});
  expect_refused(
      run({"--packed", "--q-lengths", i32("a", {0, 8}), "--kv-lengths", i32("b", {0, 4, 8})}),
      {"--kv-lengths", "3", "2"});
  const std::string four = f32("four", "(1, 8, 2, 16)", 256);
  expect_refused(
      run({"--packed", "--q-lengths", i32("c", {0, 8}), "--q", four, "--k", four, "--v", four}),
      {"--q", "(1, 8, 2, 16)", "packed"});
}

TEST_F(Refusal, FilesThatAreBroken) {
  const std::string whole = folder_.read("q.npy");
  for (const auto& [bytes, word] : {std::pair{std::string(), "empty"},
                                    {whole.substr(0, 9), "file size"},
                                    {whole.substr(0, 200), "bytes follow"},
                                    {whole + "x", "bytes follow"},
                                    {std::string("not a file of numbers"), "magic"}}) {
    expect_refused(run({"--q", folder_.write("broken.npy", bytes)}), {"--q", "broken.npy", word});
  }
  expect_refused(run({"--q", folder_.path("none.npy")}), {"--q", "none.npy", "No such file"});
  expect_refused(run({"--q", "/dev/zero"}), {"--q", "/dev/zero", "a device"});
  expect_refused(run({"--q", folder_.path("")}), {"--q", "a directory"});
  const std::string path = folder_.write("x.safetensors", safetensors_text("{}", ""));
  expect_refused({"run", "--input", path, "--out", folder_.path("o.npy")},
                 {"--input", "x.safetensors", "'q' is absent"});
}

TEST_F(Refusal, OutputsThatCannotBeWritten) {
  expect_refused(run({"--out", folder_.path("none/o.npy")}),
                 {"--out", "none/o.npy", "No such file"});
  expect_refused(run({"--out", folder_.path("")}), {"--out", "a directory"});
  expect_refused(run({"--lse", folder_.path("o.npy")}), {"--lse", "o.npy", "another file"});
  expect_refused(run({"--lse", folder_.path("none/lse.npy")}), {"--lse", "none/lse.npy"});
  expect_refused(run({"--out", folder_.path("o.txt")}), {"--out", "o.txt", ".npy"});
  expect_refused(run({"--lse", folder_.path("lse.csv")}), {"--lse", "lse.csv", ".safetensors"});
  expect_refused(run({"--report", folder_.path("")}), {"--report", "a directory"});
  // Accepted, but the disk is full: the run failed.
  expect_refused(run({"--out", "/dev/full"}), {"/dev/full", "No space left"}, 1);
}

TEST_F(Refusal, BytesThatNoTerminalShouldSee) {
  const CommandResult result = run_command(run({"--q", "\x1b[31m\xff.npy", "--json"}));
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.err.find('\x1b'), std::string::npos);
  EXPECT_FALSE(nlohmann::json::parse(result.out, nullptr, false).is_discarded());
}

}  // namespace
}  // namespace tilewright::test
