// tests/cuda/disk_cache_test.cpp: Case27, the kernel cache under damage, full and read-only disks,
// and races.
#include "backend/cuda/disk_cache.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <random>

#include "tests/cuda/scratch_folder.h"

namespace tilewright::cuda {
namespace {

namespace fs = std::filesystem;

constexpr unsigned kUnprivilegedUser = 65534;

// Runs `body` in a process of its own and returns its exit code.
int in_child(const std::function<int()>& body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int files_in(const fs::path& folder) {
  return static_cast<int>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

std::string some_bytes(std::size_t size) {
  std::string bytes(size, '\0');
  std::minstd_rand random(static_cast<unsigned>(size) + 1);
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

TEST(Case27_DiskCache, ReturnsWhatWasStoredUnderEachKey) {
  const ScratchFolder scratch;
  const DiskCache cache(scratch.path() / "made" / "when needed");
  EXPECT_FALSE(cache.load("a").has_value());
  for (const std::size_t size : {0u, 1u, 4096u, 100001u}) {
    const std::string key = "kernel of " + std::to_string(size);
    ASSERT_TRUE(cache.store(key, some_bytes(size)).ok());
    EXPECT_EQ(cache.load(key), some_bytes(size));
  }
  ASSERT_TRUE(cache.store("kernel of 1", "new").ok());
  EXPECT_EQ(cache.load("kernel of 1"), "new");
  EXPECT_EQ(cache.list().size(), 4u);
  EXPECT_EQ(files_in(cache.folder()), 4) << "unfinished files are left behind";
}

TEST(Case27_DiskCache, EveryTruncationIsAMissAndRemovesTheFile) {
  const ScratchFolder scratch;
  const DiskCache cache(scratch.path());
  const std::string payload = some_bytes(300);
  ASSERT_TRUE(cache.store("key", payload).ok());
  const std::string whole = read_bytes(cache.file_of("key"));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    write_bytes(cache.file_of("key"), whole.substr(0, size));
    ASSERT_FALSE(cache.load("key").has_value())
        << "truncated to " << size << " of " << whole.size();
    ASSERT_FALSE(fs::exists(cache.file_of("key")));
  }
  ASSERT_TRUE(cache.store("key", payload).ok());
  EXPECT_EQ(cache.load("key"), payload);
}

TEST(Case27_DiskCache, EveryFlippedByteIsAMiss) {
  const ScratchFolder scratch;
  const DiskCache cache(scratch.path());
  ASSERT_TRUE(cache.store("key", some_bytes(300)).ok());
  const std::string whole = read_bytes(cache.file_of("key"));
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    write_bytes(cache.file_of("key"), damaged);
    ASSERT_FALSE(cache.load("key").has_value()) << "byte " << at;
  }
  write_bytes(cache.file_of("key"), whole + "x");
  EXPECT_FALSE(cache.load("key").has_value()) << "trailing byte";
}

TEST(Case27_DiskCache, AnotherKeysFileIsNotHandedOut) {
  const ScratchFolder scratch;
  const DiskCache cache(scratch.path());
  ASSERT_TRUE(cache.store("mine", "my kernel").ok());
  fs::copy_file(cache.file_of("mine"), cache.file_of("yours"));  // As if their names collided.
  EXPECT_FALSE(cache.load("yours").has_value());
  EXPECT_EQ(cache.load("mine"), "my kernel");
}

TEST(Case27_DiskCache, ReadOnlyFolderIsReadButNotWritten) {
  const ScratchFolder scratch;
  const DiskCache cache(scratch.path());
  ASSERT_TRUE(cache.store("old", "kernel").ok());
  const fs::perms readable = fs::perms::owner_read | fs::perms::group_read | fs::perms::others_read;
  const fs::perms searchable =
      fs::perms::owner_exec | fs::perms::group_exec | fs::perms::others_exec;
  fs::permissions(scratch.path(), readable | searchable);
  const int problem = in_child([&] {
    if (getuid() == 0 && setuid(kUnprivilegedUser) != 0) return 1;
    if (cache.load("old") != "kernel") return 2;
    if (cache.store("new", "kernel").code() != StatusCode::io_error) return 3;
    return cache.load("new").has_value() ? 4 : 0;
  });
  fs::permissions(scratch.path(), fs::perms::owner_all);
  EXPECT_EQ(problem, 0);
  EXPECT_EQ(files_in(scratch.path()), 1);
}

TEST(Case27_DiskCache, FolderThatCannotBeMadeIsNamed) {
  const ScratchFolder scratch;
  write_bytes(scratch.path() / "file", "");
  const DiskCache cache(scratch.path() / "file" / "cache");
  const Status status = cache.store("key", "kernel");
  EXPECT_EQ(status.code(), StatusCode::io_error);
  EXPECT_NE(status.message().find(cache.folder().string()), std::string::npos) << status.message();
  EXPECT_FALSE(cache.load("key").has_value());
  EXPECT_TRUE(cache.list().empty());
}

TEST(Case27_DiskCache, FullDiskLeavesNoFileAndTheOldEntryWhole) {
  const ScratchFolder scratch;
  const DiskCache cache(scratch.path());
  ASSERT_TRUE(cache.store("key", "old").ok());
  const int problem = in_child([&] {
    signal(SIGXFSZ, SIG_IGN);  // Writes past the limit then fail, as they do on a full disk.
    const rlimit limit{1000, 1000};
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return 1;
    if (cache.store("key", some_bytes(5000)).code() != StatusCode::io_error) return 2;
    return cache.load("key") == "old" ? 0 : 3;
  });
  EXPECT_EQ(problem, 0);
  EXPECT_EQ(files_in(scratch.path()), 1);
}

TEST(Case27_DiskCache, RacingProcessesSeeOnlyWholeEntries) {
  const ScratchFolder scratch;
  const DiskCache cache(scratch.path());
  const std::string first = some_bytes(200000);
  const std::string second = some_bytes(200001);
  std::vector<pid_t> children;
  for (int process = 0; process < 4; ++process) {
    const pid_t child = fork();
    if (child == 0) {
      for (int turn = 0; turn < 50; ++turn) {
        if (!cache.store("key", (process + turn) % 2 ? first : second).ok()) _exit(1);
        const std::optional<std::string> seen = cache.load("key");
        if (!seen || (*seen != first && *seen != second)) _exit(2);
      }
      _exit(0);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0);
  }
  EXPECT_EQ(files_in(scratch.path()), 1);
}

TEST(Case27_DiskCache, ClearRemovesEntriesAndUnfinishedFilesOnly) {
  const ScratchFolder scratch;
  const DiskCache cache(scratch.path());
  ASSERT_TRUE(cache.store("a", "1").ok());
  ASSERT_TRUE(cache.store("b", "2").ok());
  write_bytes(scratch.path() / "x.kernel.1.0.unfinished", "half");
  write_bytes(scratch.path() / "notes.txt", "someone's own");
  const Result<int> removed = cache.clear();
  ASSERT_TRUE(removed.ok());
  EXPECT_EQ(*removed, 3);
  EXPECT_TRUE(fs::exists(scratch.path() / "notes.txt"));
}

TEST(Case27_DiskCache, NoFolderMeansNoCacheAndNoError) {
  const DiskCache cache{fs::path()};
  EXPECT_TRUE(cache.store("key", "kernel").ok());
  EXPECT_FALSE(cache.load("key").has_value());
  EXPECT_TRUE(cache.list().empty());
  EXPECT_EQ(*cache.clear(), 0);
}

}  // namespace
}  // namespace tilewright::cuda
