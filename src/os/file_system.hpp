// SPDX-License-Identifier: Apache-2.0
//
// The few file operations that the program needs, each with one clear sentence on failure
// ("cannot write /a/b: the disk is full"). Errc::not_found when a file to read does not exist,
// Errc::conflict when a lock is held by somebody else, Errc::invalid when the path is at fault
// (read-only, no permission, too large, not a folder), Errc::unavailable when the disk is full.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "os/file_descriptor.hpp"

namespace ke::os {

// The error of a failed system call, as a sentence: "cannot <action>: <reason>".
Error system_error(int errno_value, std::string_view action);

Result<std::string> read_file(const std::filesystem::path& path, int64_t bytes_max);

// Readers see the old contents or the new, never a mixture, also after a power cut: temporary file
// in the same folder, fsync, rename. `mode` is the permission bits of a new file.
Result<void> write_file_atomically(const std::filesystem::path& path, std::string_view contents,
                                   uint32_t mode = 0644);

Result<void> make_directories(const std::filesystem::path& path);  // like mkdir -p
bool exists(const std::filesystem::path& path);
Result<void> copy_file(const std::filesystem::path& from, const std::filesystem::path& to);
Result<void> remove_tree(const std::filesystem::path& path);  // absent is success
Result<std::vector<std::string>> list_directory(const std::filesystem::path& path);  // sorted names

// The running binary, from /proc/self/exe.
Result<std::filesystem::path> own_executable();

// First executable file called `name` in a PATH-like list (default: this process's PATH), or `name`
// itself when it holds a slash. Errc::not_found otherwise.
Result<std::filesystem::path> find_program(std::string_view name, std::string_view path_list = {});

// A fresh folder below the system's temporary one (TMPDIR), removed with the object. Mode 0700.
class TemporaryDirectory {
 public:
  static Result<TemporaryDirectory> create(std::string_view prefix = "kernelevolve");
  TemporaryDirectory(TemporaryDirectory&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  TemporaryDirectory& operator=(TemporaryDirectory&& other) noexcept;
  ~TemporaryDirectory();
  const std::filesystem::path& path() const { return path_; }

 private:
  explicit TemporaryDirectory(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;
};

// An exclusive lock on a file, held until the object or its process ends (flock). The file is
// created when absent and holds the holder's pid as text; it is not removed afterwards.
class FileLock {
 public:
  // Does not wait: Errc::conflict names the holder's pid when somebody else has the lock.
  static Result<FileLock> try_lock(const std::filesystem::path& path);
  // Waits (the lock of the measuring device). Interruptible only by the process's end.
  static Result<FileLock> lock(const std::filesystem::path& path);
  // Waits until nobody has the lock for themselves; any number share it.
  static Result<FileLock> share(const std::filesystem::path& path);
  // Whether somebody has the lock for themselves now, be it another lock of this process.
  static bool is_held(const std::filesystem::path& path);

  FileLock(FileLock&&) noexcept = default;
  FileLock& operator=(FileLock&&) noexcept = default;

 private:
  explicit FileLock(FileDescriptor fd) : fd_(std::move(fd)) {}
  FileDescriptor fd_;
};

}  // namespace ke::os
