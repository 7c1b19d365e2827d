// SPDX-License-Identifier: Apache-2.0
//
// See flock(2). The lock belongs to the open file, so it ends with the process however that ends.
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "os/file_system.hpp"

namespace ke::os {

namespace {

Result<FileDescriptor> open_lock(const std::filesystem::path& path) {
  FileDescriptor fd(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!fd.valid()) return system_error(errno, "lock " + path.string());
  return fd;
}

std::string holder_of(int fd) {
  char text[32];
  const ssize_t count = pread(fd, text, sizeof text, 0);
  std::string pid(text, count > 0 ? static_cast<size_t>(count) : 0);
  const size_t end = pid.find_first_not_of("0123456789");
  return end == 0 || pid.empty() ? "another process" : "process " + pid.substr(0, end);
}

// For people who look: a full disk must not take the lock away.
void note_holder(int fd) {
  const std::string pid = std::to_string(getpid()) + "\n";
  if (ftruncate(fd, 0) != 0) return;
  [[maybe_unused]] const ssize_t written = pwrite(fd, pid.data(), pid.size(), 0);
}

}  // namespace

Result<FileLock> FileLock::try_lock(const std::filesystem::path& path) {
  FileDescriptor fd = TRY(open_lock(path));
  while (flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno != EWOULDBLOCK) return system_error(errno, "lock " + path.string());
    return Error{Errc::conflict, path.string() + " is locked by " + holder_of(fd.get())};
  }
  note_holder(fd.get());
  return FileLock(std::move(fd));
}

Result<FileLock> FileLock::lock(const std::filesystem::path& path) {
  FileDescriptor fd = TRY(open_lock(path));
  while (flock(fd.get(), LOCK_EX) != 0) {
    if (errno != EINTR) return system_error(errno, "lock " + path.string());
  }
  note_holder(fd.get());
  return FileLock(std::move(fd));
}

Result<FileLock> FileLock::share(const std::filesystem::path& path) {
  FileDescriptor fd = TRY(open_lock(path));
  while (flock(fd.get(), LOCK_SH) != 0) {
    if (errno != EINTR) return system_error(errno, "lock " + path.string());
  }
  return FileLock(std::move(fd));
}

bool FileLock::is_held(const std::filesystem::path& path) {
  const FileDescriptor fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  return fd.valid() && flock(fd.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

}  // namespace ke::os
