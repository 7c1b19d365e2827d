// SPDX-License-Identifier: Apache-2.0
#include "os/file_system.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <system_error>

namespace ke::os {

namespace {

namespace fs = std::filesystem;

// errno values that a caller or a person can act on; the rest speaks through strerror.
struct Known {
  int value;
  Errc code;
  const char* reason;
};
constexpr Known kKnown[] = {
    {ENOSPC, Errc::unavailable, "the disk is full"},
    {EDQUOT, Errc::unavailable, "the disk quota is used up"},
    {EROFS, Errc::invalid, "the file system is read-only"},
    {EACCES, Errc::invalid, "permission denied"},
    {EPERM, Errc::invalid, "not permitted"},
    {ENOENT, Errc::not_found, "it does not exist"},
    {ENOTDIR, Errc::invalid, "a part of the path is not a folder"},
    {EISDIR, Errc::invalid, "it is a folder"},
    {ENAMETOOLONG, Errc::invalid, "the name is too long"},
    {ENOMEM, Errc::unavailable, "out of memory"},
    {EMFILE, Errc::unavailable, "too many open files"},
};

Error path_error(int errno_value, std::string_view verb, const fs::path& path) {
  return system_error(errno_value, std::string(verb) + " " + path.string());
}

Result<void> write_all(int fd, std::string_view contents, const fs::path& path) {
  while (!contents.empty()) {
    const ssize_t written = ::write(fd, contents.data(), contents.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return path_error(errno, "write", path);
    contents.remove_prefix(static_cast<size_t>(written));
  }
  return {};
}

Result<void> write_synced(const fs::path& path, std::string_view contents, uint32_t mode) {
  FileDescriptor fd(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
  if (!fd.valid()) return path_error(errno, "write", path);
  TRY(write_all(fd.get(), contents, path));
  if (fsync(fd.get()) != 0) return path_error(errno, "write", path);
  return {};
}

// The new name itself must survive a power cut. Some file systems cannot sync folders: no error.
void sync_folder(const fs::path& folder) {
  const FileDescriptor fd(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.valid()) fsync(fd.get());
}

}  // namespace

Error system_error(int errno_value, std::string_view action) {
  const auto* known = std::find_if(std::begin(kKnown), std::end(kKnown),
                                   [&](const Known& k) { return k.value == errno_value; });
  const bool found = known != std::end(kKnown);
  std::string reason = found ? known->reason : std::strerror(errno_value);
  return Error{found ? known->code : Errc::internal,
               "cannot " + std::string(action) + ": " + std::move(reason)};
}

Result<std::string> read_file(const fs::path& path, int64_t bytes_max) {
  const FileDescriptor fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid()) return path_error(errno, "read", path);
  struct stat status {};
  if (fstat(fd.get(), &status) != 0) return path_error(errno, "read", path);
  if (S_ISDIR(status.st_mode)) return path_error(EISDIR, "read", path);
  if (!S_ISREG(status.st_mode)) {
    return Error{Errc::invalid, "cannot read " + path.string() + ": it is not a file"};
  }
  std::string contents;
  char buffer[1 << 16];
  while (true) {
    const ssize_t count = ::read(fd.get(), buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return path_error(errno, "read", path);
    if (count == 0) return contents;
    if (static_cast<int64_t>(contents.size()) + count > bytes_max) {
      return Error{Errc::invalid, "cannot read " + path.string() + ": it is larger than " +
                                      std::to_string(bytes_max) + " bytes"};
    }
    contents.append(buffer, static_cast<size_t>(count));
  }
}

Result<void> write_file_atomically(const fs::path& path, std::string_view contents, uint32_t mode) {
  // Unique within the machine: a pid, and an address that no other thread's stack has.
  char unique[64];
  std::snprintf(unique, sizeof unique, ".tmp-%d-%p", getpid(), static_cast<void*>(unique));
  const fs::path temporary = path.string() + unique;
  ::unlink(temporary.c_str());
  Result<void> written = write_synced(temporary, contents, mode);
  if (written && ::rename(temporary.c_str(), path.c_str()) != 0) {
    written = path_error(errno, "write", path);
  }
  if (!written) {
    ::unlink(temporary.c_str());
    return written;
  }
  sync_folder(path.has_parent_path() ? path.parent_path() : fs::path("."));
  return {};
}

Result<void> make_directories(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) return path_error(error.value(), "make the folder", path);
  if (!fs::is_directory(path, error)) return path_error(ENOTDIR, "make the folder", path);
  return {};
}

bool exists(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

Result<void> copy_file(const fs::path& from, const fs::path& to) {
  std::error_code error;
  fs::copy_file(from, to, fs::copy_options::overwrite_existing, error);
  if (error) return path_error(error.value(), "copy " + from.string() + " to", to);
  return {};
}

Result<void> remove_tree(const fs::path& path) {
  std::error_code error;
  fs::remove_all(path, error);
  if (error) return path_error(error.value(), "remove", path);
  return {};
}

Result<std::vector<std::string>> list_directory(const fs::path& path) {
  std::error_code error;
  std::vector<std::string> names;
  fs::directory_iterator entry(path, error);
  if (error) return path_error(error.value(), "list", path);
  while (entry != fs::directory_iterator()) {
    names.push_back(entry->path().filename().string());
    entry.increment(error);
    if (error) return path_error(error.value(), "list", path);
  }
  std::sort(names.begin(), names.end());
  return names;
}

Result<fs::path> own_executable() {
  std::error_code error;
  fs::path path = fs::read_symlink("/proc/self/exe", error);
  if (error) return path_error(error.value(), "find the running program through", "/proc/self/exe");
  return path;
}

Result<fs::path> find_program(std::string_view name, std::string_view path_list) {
  const auto runnable = [](const fs::path& path) {
    std::error_code error;
    return fs::is_regular_file(path, error) && ::access(path.c_str(), X_OK) == 0;
  };
  const Error missing{Errc::not_found, "there is no program " + std::string(name)};
  if (name.find('/') != std::string_view::npos) {
    return runnable(name) ? Result<fs::path>(fs::path(name)) : Result<fs::path>(missing);
  }
  const char* own = std::getenv("PATH");
  std::string_view list = path_list.empty() && own != nullptr ? std::string_view(own) : path_list;
  while (!list.empty()) {
    const size_t colon = std::min(list.find(':'), list.size());
    const fs::path candidate = fs::path(list.substr(0, colon)) / name;
    if (colon > 0 && runnable(candidate)) return candidate;
    list.remove_prefix(std::min(colon + 1, list.size()));
  }
  return missing;
}

Result<TemporaryDirectory> TemporaryDirectory::create(std::string_view prefix) {
  const char* chosen = std::getenv("TMPDIR");
  const fs::path parent = chosen != nullptr && *chosen != 0 ? chosen : "/tmp";
  std::string name = (parent / (std::string(prefix) + "-XXXXXX")).string();
  if (mkdtemp(name.data()) == nullptr) return path_error(errno, "make a folder in", parent);
  return TemporaryDirectory(name);
}

TemporaryDirectory& TemporaryDirectory::operator=(TemporaryDirectory&& other) noexcept {
  std::swap(path_, other.path_);
  return *this;
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code error;
  if (!path_.empty()) fs::remove_all(path_, error);
}

}  // namespace ke::os
