// SPDX-License-Identifier: Apache-2.0
//
// Landlock: a second wall behind the mounts, and the only one for files where the machine forbids
// mount namespaces. See landlock(7); the structures are declared here because Debian 12's header is
// older than the kernels that we meet.
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "os/sandbox_plan.hpp"

#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_add_rule 445
#define SYS_landlock_restrict_self 446
#endif

namespace ke::os {

namespace {

struct RulesetAttr {
  uint64_t handled_access_fs;
};
struct [[gnu::packed]] PathBeneathAttr {
  uint64_t allowed_access;
  int32_t parent_fd;
};
constexpr int kRulePathBeneath = 1;
constexpr unsigned kAskVersion = 1;

constexpr uint64_t kExecute = 1 << 0, kWriteFile = 1 << 1, kReadFile = 1 << 2, kReadDir = 1 << 3;
constexpr uint64_t kReading = kExecute | kReadFile | kReadDir;
constexpr uint64_t kOnFiles = kExecute | kWriteFile | kReadFile;

// Every right that the kernel's version knows, so that all of them are forbidden unless granted:
// version 1 has 13 rights on files, 2 adds refer, 3 truncate, 5 device ioctls.
constexpr uint64_t handled_rights(long version) {
  constexpr uint64_t kVersion1 = (1 << 13) - 1;
  return kVersion1 | (version >= 2 ? 1 << 13 : 0) | (version >= 3 ? 1 << 14 : 0) |
         (version >= 5 ? 1 << 15 : 0);
}

// `root`: a folder that the absolute path is looked up in.
int allow(int ruleset, int root, const char* path, uint64_t rights) {
  const char* below = path[1] == '\0' ? "." : path + 1;
  const int fd = ::openat(root, below, O_PATH | O_CLOEXEC);
  if (fd < 0) return errno;
  PathBeneathAttr attr{rights, fd};
  long result = syscall(SYS_landlock_add_rule, ruleset, kRulePathBeneath, &attr, 0);
  if (result != 0 && errno == EINVAL) {  // a file, not a folder: fewer rights exist
    attr.allowed_access = rights & (kOnFiles | (1 << 14) | (1 << 15));
    result = syscall(SYS_landlock_add_rule, ruleset, kRulePathBeneath, &attr, 0);
  }
  const int reason = result == 0 ? 0 : errno;
  ::close(fd);
  return reason;
}

}  // namespace

LandlockPlan plan_landlock(const RoomOptions& options) {
  LandlockPlan plan;
  for (const VisiblePath& path : options.paths) {
    const std::string& inside = path.inside.empty() ? path.host : path.inside;
    plan.readable.push_back(path.host);
    if (path.writable) plan.writable.push_back(inside);
  }
  for (const char* device : {"/dev/null", "/dev/zero", "/dev/full"}) {
    plan.readable.push_back(device);
    plan.writable.push_back(device);
  }
  plan.readable.push_back("/dev/urandom");
  if (options.proc && options.proc_writable) plan.writable.push_back("/proc");
  if (options.tmp_bytes > 0) plan.writable.push_back("/tmp");
  return plan;
}

int make_ruleset(const LandlockPlan& plan, bool new_root, const char* root_path, int& ruleset) {
  const long version = syscall(SYS_landlock_create_ruleset, nullptr, 0, kAskVersion);
  if (version <= 0) return ENOSYS;
  const int root = ::open(root_path, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (root < 0) return errno;
  const RulesetAttr attr{handled_rights(version)};
  ruleset = static_cast<int>(syscall(SYS_landlock_create_ruleset, &attr, sizeof attr, 0));
  int reason = ruleset < 0 ? errno : 0;
  if (reason == 0 && new_root) reason = allow(ruleset, root, "/", kReading);
  for (const std::string& path : plan.readable) {
    // Absent ones cannot be read anyway.
    if (reason == 0 && !new_root) allow(ruleset, root, path.c_str(), kReading);
  }
  for (const std::string& path : plan.writable) {
    if (reason == 0) allow(ruleset, root, path.c_str(), attr.handled_access_fs);
  }
  ::close(root);
  return reason;
}

int enter_landlock(const LandlockPlan& plan, bool new_root) {
  int ruleset = -1;
  int reason = make_ruleset(plan, new_root, "/", ruleset);
  if (reason == 0 && syscall(SYS_landlock_restrict_self, ruleset, 0) != 0) reason = errno;
  if (ruleset >= 0) ::close(ruleset);
  return reason;
}

}  // namespace ke::os
