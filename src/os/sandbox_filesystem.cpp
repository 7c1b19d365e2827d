// SPDX-License-Identifier: Apache-2.0
//
// A room's root: an empty tmpfs with read-only bind mounts of what shall be visible, pivoted into
// place. The sources are cloned (open_tree) before the new root covers anything, so that a source
// below /tmp works too. See mount_namespaces(7), pivot_root(2), open_tree(2), mount_setattr(2).
#include <fcntl.h>
#include <linux/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "os/sandbox_plan.hpp"

// <sys/mount.h> clashes with <linux/mount.h> in glibc 2.36; these are the kernel's values.
namespace {
constexpr unsigned long kReadOnly = 1, kNoSuid = 2, kNoDev = 4, kNoExec = 8, kRemount = 32,
                        kBind = 4096, kRecursive = 16384, kPrivate = 1 << 18;
constexpr int kDetach = 2;

long mount(const char* source, const char* target, const char* type, unsigned long flags,
           const char* data) {
  return syscall(SYS_mount, source, target, type, flags, data);
}
}  // namespace

namespace ke::os {

namespace {

namespace fs = std::filesystem;
using Entry = FilesystemPlan::Entry;
using Kind = FilesystemPlan::Kind;

bool is_below(const std::string& path, const std::string& folder) {
  return path == folder || folder == "/" || path.starts_with(folder + "/");
}

// Adds the folders above a path, outermost first. Repeats are harmless (EEXIST).
void add_parents(const std::string& base, const std::string& inside, std::vector<Entry>& entries) {
  for (size_t slash = inside.find('/', 1); slash != std::string::npos;
       slash = inside.find('/', slash + 1)) {
    entries.push_back({Kind::folder, base + inside.substr(0, slash), "", false, false});
  }
}

// /bin -> usr/bin and the like stay links when their target is visible anyway.
bool stays_link(const fs::path& resolved, const VisiblePath& path,
                const std::vector<VisiblePath>& all) {
  std::error_code error;
  if (path.writable || !path.inside.empty() || !fs::is_symlink(path.host, error)) return false;
  return std::any_of(all.begin(), all.end(), [&](const VisiblePath& other) {
    return other.host != path.host && other.inside.empty() &&
           is_below(resolved.string(), other.host);
  });
}

Result<void> add_path(const VisiblePath& path, const RoomOptions& options, FilesystemPlan& plan) {
  const std::string inside = path.inside.empty() ? path.host : path.inside;
  if (!path.host.starts_with('/') || !inside.starts_with('/')) {
    return Error{Errc::invalid, "a room's path must be absolute: " + path.host};
  }
  std::error_code error;
  const fs::path resolved = fs::canonical(path.host, error);
  if (error) {
    if (path.optional) return {};
    return Error{Errc::not_found, "a room's path does not exist: " + path.host};
  }
  add_parents(plan.base, inside, plan.entries);
  if (stays_link(resolved, path, options.paths)) {
    plan.entries.push_back({Kind::link, plan.base + inside,
                            fs::read_symlink(path.host, error).string(), false, false});
    return {};
  }
  const Kind kind = fs::is_directory(resolved, error) ? Kind::folder : Kind::file;
  if (inside != "/") plan.entries.push_back({kind, plan.base + inside, "", false, false});
  plan.entries.push_back(
      {Kind::bind, plan.base + inside, resolved.string(), path.writable, path.device});
  return {};
}

void add_devices(FilesystemPlan& plan) {
  plan.entries.push_back({Kind::folder, plan.base + "/dev", "", false, false});
  for (const char* name : {"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"}) {
    if (!fs::exists(name)) continue;
    plan.entries.push_back({Kind::file, plan.base + name, "", false, false});
    plan.entries.push_back({Kind::bind, plan.base + name, name, true, true});
  }
  plan.entries.push_back({Kind::link, plan.base + "/dev/fd", "/proc/self/fd", false, false});
}

// --- In the child ------------------------------------------------------------------------------

// A detached copy of the mount at `source`, with everything mounted below it.
int clone_tree(const Entry& entry) {
  constexpr unsigned kFlags = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE;
  const long tree = syscall(SYS_open_tree, AT_FDCWD, entry.source.c_str(), kFlags);
  if (tree < 0) return -1;
  mount_attr attributes{};
  attributes.attr_set = MOUNT_ATTR_NOSUID;
  if (!entry.device) attributes.attr_set |= MOUNT_ATTR_NODEV;
  if (!entry.writable) attributes.attr_set |= MOUNT_ATTR_RDONLY;
  const long set = syscall(SYS_mount_setattr, tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &attributes,
                           sizeof attributes);
  if (set == 0) return static_cast<int>(tree);
  const int reason = errno;
  ::close(static_cast<int>(tree));
  errno = reason;
  return -1;
}

bool place(const Entry& entry, int tree) {
  switch (entry.kind) {
    case Kind::folder:
      // Below a bind mount the folder is there already, and the mount may be read-only.
      return ::mkdir(entry.at.c_str(), 0755) == 0 || errno == EEXIST || errno == EROFS;
    case Kind::file: {
      const int fd = ::open(entry.at.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
      if (fd < 0) return errno == EROFS || errno == EACCES || errno == EEXIST;
      return ::close(fd) == 0;
    }
    case Kind::link:
      return ::symlink(entry.source.c_str(), entry.at.c_str()) == 0 || errno == EEXIST;
    case Kind::bind:
      return syscall(SYS_move_mount, tree, "", AT_FDCWD, entry.at.c_str(),
                     MOVE_MOUNT_F_EMPTY_PATH) == 0;
    case Kind::memory:
      return mount("tmp", entry.at.c_str(), "tmpfs", kNoSuid | kNoDev, entry.source.c_str()) == 0;
  }
  return false;
}

bool mount_proc(const FilesystemPlan& plan) {
  if (plan.proc.empty()) return true;
  const unsigned long flags =
      kNoSuid | kNoDev | kNoExec | (plan.proc_writable ? 0 : kReadOnly);
  const char* data = plan.proc_whole ? nullptr : "subset=pid";
  if (mount("proc", plan.proc.c_str(), "proc", flags, data) == 0) return true;
  // Linux before 5.8 does not know the subset. A host whose /proc is masked forbids a new one:
  // then the room has an empty /proc.
  return mount("proc", plan.proc.c_str(), "proc", flags, nullptr) == 0 || errno == EPERM;
}

bool build_root(const FilesystemPlan& plan, const int* trees) {
  if (mount("room", plan.base.c_str(), "tmpfs", kNoSuid | kNoDev, "mode=755,size=1m") != 0) {
    return false;
  }
  int bind = 0;
  for (const Entry& entry : plan.entries) {
    if (!place(entry, entry.kind == Kind::bind ? trees[bind] : -1)) return false;
    if (entry.kind == Kind::bind) ++bind;
  }
  return mount_proc(plan);
}

// The old root is stacked on the new one by the pivot and then taken off.
bool pivot(const FilesystemPlan& plan) {
  constexpr unsigned long kFlags = kRemount | kBind | kReadOnly | kNoSuid | kNoDev;
  return ::chdir(plan.base.c_str()) == 0 && syscall(SYS_pivot_root, ".", ".") == 0 &&
         syscall(SYS_umount2, ".", kDetach) == 0 && ::chdir("/") == 0 &&
         mount(nullptr, "/", nullptr, kFlags, nullptr) == 0;
}

}  // namespace

Result<FilesystemPlan> plan_filesystem(const RoomOptions& options) {
  FilesystemPlan plan;
  for (const char* folder : {"/tmp", "/run", "/mnt", "/usr"}) {
    if (plan.base.empty() && fs::is_directory(folder)) plan.base = folder;
  }
  std::vector<VisiblePath> paths = options.paths;
  // Outer mounts first, so that a writable folder may lie below a read-only one.
  std::stable_sort(paths.begin(), paths.end(), [](const VisiblePath& a, const VisiblePath& b) {
    const auto depth = [](const VisiblePath& path) {
      const std::string& inside = path.inside.empty() ? path.host : path.inside;
      return inside == "/" ? 0 : std::count(inside.begin(), inside.end(), '/');
    };
    return depth(a) < depth(b);
  });
  // The private /tmp comes before what is mounted below it.
  if (options.tmp_bytes > 0) {
    plan.entries.push_back({Kind::folder, plan.base + "/tmp", "", false, false});
    plan.entries.push_back({Kind::memory, plan.base + "/tmp",
                            "mode=1777,size=" + std::to_string(options.tmp_bytes), false, false});
  }
  for (const VisiblePath& path : paths) TRY(add_path(path, options, plan));
  add_devices(plan);
  if (options.proc) {
    plan.entries.push_back({Kind::folder, plan.base + "/proc", "", false, false});
    plan.proc = plan.base + "/proc";
    plan.proc_whole = options.proc_whole;
    plan.proc_writable = options.proc_writable;
  }
  const auto binds = std::count_if(plan.entries.begin(), plan.entries.end(),
                                   [](const Entry& entry) { return entry.kind == Kind::bind; });
  if (binds > FilesystemPlan::kBindsMax) {
    return Error{Errc::invalid, "a room has too many visible paths"};
  }
  return plan;
}

int enter_filesystem(const FilesystemPlan& plan) {
  if (mount(nullptr, "/", nullptr, kRecursive | kPrivate, nullptr) != 0) return errno;
  int trees[FilesystemPlan::kBindsMax];
  int count = 0;
  int reason = 0;
  for (const Entry& entry : plan.entries) {
    if (entry.kind != Kind::bind || reason != 0) continue;
    trees[count] = clone_tree(entry);
    if (trees[count] < 0) {
      reason = errno;
    } else {
      ++count;
    }
  }
  if (reason == 0 && !build_root(plan, trees)) {
    reason = errno;
    syscall(SYS_umount2, plan.base.c_str(), kDetach);
  } else if (reason == 0 && !pivot(plan)) {
    reason = errno;
  }
  for (int i = 0; i < count; ++i) ::close(trees[i]);
  return reason;
}

}  // namespace ke::os
