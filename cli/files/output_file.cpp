// cli/files/output_file.cpp: a file that appears whole, or not at all.
#include "files/output_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <utility>

#include "files/error_text.h"

namespace tilewright::files {
namespace {

constexpr mode_t kNewFileMode = 0666;  // less the user's mask

std::string directory_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// Where a link leads, so that renaming replaces the file and keeps the link.
std::string resolve(const std::string& path) {
  const std::unique_ptr<char, decltype(&std::free)> real(realpath(path.c_str(), nullptr),
                                                         std::free);
  return real ? std::string(real.get()) : path;
}

// A name beside target that no other writer uses.
std::string temporary_name(const std::string& target) {
  static int counter = 0;
  return fmt::format("{}.tmp-{}-{}", target, getpid(), counter++);
}

std::string descriptor_path(int file) {
  return fmt::format("/proc/self/fd/{}", file);
}

}  // namespace

Result<OutputFile> OutputFile::create(const std::string& path, std::int64_t bytes) {
  OutputFile out;
  out.path_ = path;
  const auto refuse = [&](std::string_view why) {
    return Status{StatusCode::invalid_argument,
                  fmt::format("{}: {}; accepted: a file that may be written", quote(path), why)};
  };
  if (path.empty()) return refuse("an empty path");
  struct stat status {};
  const bool exists = stat(path.c_str(), &status) == 0;
  if (exists && S_ISDIR(status.st_mode)) return refuse("a directory");
  if (exists && !S_ISREG(status.st_mode)) {
    out.direct_ = true;
    out.file_ = open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (out.file_ < 0) return refuse(error_text(errno));
    return out;
  }
  if (exists && access(path.c_str(), W_OK) != 0) return refuse(error_text(errno));
  out.target_ = resolve(path);
  // A file without a name leaves nothing behind, however the process ends.
  out.file_ =
      open(directory_of(out.target_).c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, kNewFileMode);
  if (out.file_ >= 0 && access(descriptor_path(out.file_).c_str(), F_OK) != 0) {
    close(std::exchange(out.file_, -1));  // without /proc it could not be given a name
  }
  if (out.file_ < 0) {
    out.temporary_ = temporary_name(out.target_);
    out.file_ = open(out.temporary_.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, kNewFileMode);
    if (out.file_ < 0) {
      out.temporary_.clear();
      return refuse(error_text(errno));
    }
  }
  if (exists) (void)!fchmod(out.file_, status.st_mode & 07777);
  // Not every file system can reserve; those that cannot say so when written.
  if (bytes > 0 && fallocate(out.file_, FALLOC_FL_KEEP_SIZE, 0, bytes) != 0 &&
      (errno == ENOSPC || errno == EFBIG || errno == EDQUOT)) {
    return Status{StatusCode::io_error, fmt::format("{}: {} bytes could not be reserved: {}",
                                                    quote(path), bytes, error_text(errno))};
  }
  return out;
}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : path_(std::move(other.path_)),
      target_(std::move(other.target_)),
      temporary_(std::exchange(other.temporary_, {})),
      file_(std::exchange(other.file_, -1)),
      direct_(other.direct_),
      written_(other.written_) {}

OutputFile::~OutputFile() {
  if (file_ >= 0) close(file_);
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

Status OutputFile::failed(const char* what, int error) const {
  return {StatusCode::io_error, fmt::format("{}: {} after {} bytes failed: {}", quote(path_), what,
                                            written_, error_text(error))};
}

Status OutputFile::write(const void* data, std::size_t bytes) {
  const char* from = static_cast<const char*>(data);
  constexpr std::size_t kMaxWrite = std::size_t{1} << 30;  // one call takes less than 2 GiB
  while (bytes > 0) {
    const ssize_t done = ::write(file_, from, std::min(bytes, kMaxWrite));
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) return failed("writing", errno);
    from += done;
    bytes -= static_cast<std::size_t>(done);
    written_ += static_cast<std::size_t>(done);
  }
  return {};
}

Status OutputFile::give_name() {
  if (temporary_.empty()) {
    const std::string temporary = temporary_name(target_);
    if (linkat(AT_FDCWD, descriptor_path(file_).c_str(), AT_FDCWD, temporary.c_str(),
               AT_SYMLINK_FOLLOW) != 0) {
      return failed("naming it", errno);
    }
    temporary_ = temporary;
  }
  if (rename(temporary_.c_str(), target_.c_str()) != 0) return failed("renaming it", errno);
  temporary_.clear();
  return {};
}

Status OutputFile::commit() {
  // Devices and pipes have nothing to flush.
  if (!direct_ && fsync(file_) != 0) return failed("flushing", errno);
  if (!direct_) {
    Status status = give_name();
    if (!status.ok()) return status;
  }
  if (close(std::exchange(file_, -1)) != 0) return failed("closing", errno);
  return {};
}

}  // namespace tilewright::files
