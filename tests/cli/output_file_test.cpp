// tests/cli/output_file_test.cpp: an output file appears whole or not at all.
#include "files/output_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>

#include "file_text.h"

namespace tilewright::files {
namespace {

using test::ScratchFolder;

TEST(OutputFile, NothingIsSeenBeforeCommit) {
  const ScratchFolder folder;
  folder.write("x", "before");
  {
    auto file = OutputFile::create(folder.path("x"), 5);
    ASSERT_TRUE(file.ok()) << file.status().message();
    ASSERT_TRUE(file->write("after", 5).ok());
    EXPECT_EQ(folder.read("x"), "before");
    ASSERT_TRUE(file->commit().ok());
  }
  EXPECT_EQ(folder.read("x"), "after");
  EXPECT_EQ(folder.names().size(), 1u);
}

TEST(OutputFile, WithoutCommitNothingChangesOrStays) {
  const ScratchFolder folder;
  folder.write("x", "before");
  for (const char* name : {"x", "new"}) {
    auto file = OutputFile::create(folder.path(name), 3);
    ASSERT_TRUE(file.ok());
    ASSERT_TRUE(file->write("abc", 3).ok());
  }
  EXPECT_EQ(folder.read("x"), "before");
  EXPECT_EQ(folder.names(), std::vector<std::string>{"x"});
}

TEST(OutputFile, RenamingKeepsTheLinkAndTheMode) {
  const ScratchFolder folder;
  folder.write("real", "before");
  std::filesystem::permissions(folder.path("real"), std::filesystem::perms(0640));
  std::filesystem::create_symlink(folder.path("real"), folder.path("link"));
  auto file = OutputFile::create(folder.path("link"), 0);
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE(file->write("after", 5).ok());
  ASSERT_TRUE(file->commit().ok());
  EXPECT_TRUE(std::filesystem::is_symlink(folder.path("link")));
  EXPECT_EQ(folder.read("real"), "after");
  EXPECT_EQ(std::filesystem::status(folder.path("real")).permissions(),
            std::filesystem::perms(0640));
}

TEST(OutputFile, PathsThatCannotBeWrittenAreRefused) {
  const ScratchFolder folder;
  for (const auto& [path, word] : {std::pair{folder.path("none/x"), "No such file"},
                                   {folder.path(""), "a directory"},
                                   {std::string(), "an empty path"}}) {
    const auto file = OutputFile::create(path, 1);
    ASSERT_FALSE(file.ok()) << path;
    EXPECT_EQ(file.status().code(), StatusCode::invalid_argument);
    EXPECT_NE(file.status().message().find(word), std::string::npos) << file.status().message();
  }
}

TEST(OutputFile, AFullDiskIsAnErrorThatSaysSo) {
  auto file = OutputFile::create("/dev/full", 4);
  ASSERT_TRUE(file.ok());
  const Status status = file->write("data", 4);
  EXPECT_EQ(status.code(), StatusCode::io_error);
  EXPECT_NE(status.message().find("'/dev/full'"), std::string::npos) << status.message();
  EXPECT_NE(status.message().find("No space left"), std::string::npos) << status.message();
}

TEST(OutputFile, ALimitOnFileSizeKeepsWhatWasThere) {
  const ScratchFolder folder;
  folder.write("x", "before");
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit usual{};
  getrlimit(RLIMIT_FSIZE, &usual);
  const rlimit small{4096, usual.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  const std::string data(10'000, 'x');
  Status status;
  {
    // Whether the file system can reserve bytes or not, one of the two fails.
    auto file = OutputFile::create(folder.path("x"), 10'000);
    status = file.ok() ? file->write(data.data(), data.size()) : file.status();
  }
  setrlimit(RLIMIT_FSIZE, &usual);
  EXPECT_EQ(status.code(), StatusCode::io_error) << status.message();
  EXPECT_EQ(folder.read("x"), "before");
  EXPECT_EQ(folder.names().size(), 1u);
}

}  // namespace
}  // namespace tilewright::files
