// SPDX-License-Identifier: Apache-2.0
//
// Limits on the memory and the processes of a whole room, through control groups of version 1 or 2,
// where this process may make some below its own. See cgroups(7).
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <sstream>

#include "os/file_system.hpp"
#include "os/sandbox_plan.hpp"

namespace ke::os {

namespace {

constexpr std::string_view kPrefix = "kernelevolve-";
constexpr int64_t kFileBytesMax = 1 << 20;

struct Mount {
  std::string root, point, type, super_options;
};

// Lines of /proc/self/mountinfo: id parent major:minor root point options [tags] - type source
// super
std::vector<Mount> cgroup_mounts(std::string_view text) {
  std::vector<Mount> found;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string skipped, word;
    Mount mount;
    words >> skipped >> skipped >> skipped >> mount.root >> mount.point;
    while (words >> word && word != "-") {
    }
    words >> mount.type >> skipped >> mount.super_options;
    if (mount.type == "cgroup" || mount.type == "cgroup2") found.push_back(mount);
  }
  return found;
}

bool has_word(std::string_view list, std::string_view word, char separator) {
  while (!list.empty()) {
    const size_t end = std::min(list.find(separator), list.size());
    if (list.substr(0, end) == word) return true;
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return false;
}

// This process's group in the hierarchy that has the controller ("" for version 2), from lines
// "id:controllers:path".
std::string membership_path(std::string_view membership, std::string_view controller) {
  std::istringstream lines{std::string(membership)};
  for (std::string line; std::getline(lines, line);) {
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string_view names = std::string_view(line).substr(first + 1, second - first - 1);
    if (names == controller || has_word(names, controller, ',')) return line.substr(second + 1);
  }
  return "";
}

// The folder of our own group; a mount of a part of the hierarchy shows the part's root.
std::string folder_of(const Mount& mount, const std::string& path) {
  std::string below = path;
  if (mount.root != "/" && below.starts_with(mount.root)) below.erase(0, mount.root.size());
  if (below == "/") below.clear();
  return mount.point + below;
}

CgroupBase find_base(const std::vector<Mount>& mounts, std::string_view membership,
                     std::string_view controller) {
  for (const Mount& mount : mounts) {
    const bool unified = mount.type == "cgroup2";
    if (!unified && !has_word(mount.super_options, controller, ',')) continue;
    const std::string path = membership_path(membership, unified ? "" : controller);
    const std::string folder = folder_of(mount, path);
    if (unified) {
      const auto enabled = read_file(folder + "/cgroup.subtree_control", kFileBytesMax);
      std::string words = enabled ? *enabled : "";
      std::replace(words.begin(), words.end(), '\n', ' ');
      if (!has_word(words, controller, ' ')) continue;
    }
    if (::access(folder.c_str(), W_OK) == 0) return {folder, unified, ""};
  }
  return {"", false, "no writable control group"};
}

// Groups of processes that were killed before they could tidy up.
void remove_stale(const CgroupBase& base) {
  if (base.folder.empty()) return;
  const auto names = list_directory(base.folder);
  if (!names) return;
  for (const std::string& name : *names) {
    if (!name.starts_with(kPrefix)) continue;
    int owner = 0;
    std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), owner);
    if (owner > 0 && ::kill(owner, 0) != 0 && errno == ESRCH) {
      ::rmdir((base.folder + "/" + name).c_str());
    }
  }
}

bool write_value(const std::string& file, int64_t value) {
  const FileDescriptor fd(::open(file.c_str(), O_WRONLY | O_CLOEXEC));
  const std::string text = std::to_string(value);
  return fd.valid() &&
         ::write(fd.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

// Starts with the owner's pid (see remove_stale); a thread makes one at a time.
std::string fresh_name() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::string(kPrefix) + std::to_string(getpid()) + "-" + std::to_string(gettid()) + "-" +
         std::to_string(now.tv_sec) + "-" + std::to_string(now.tv_nsec);
}

struct Wish {
  const CgroupBase& base;
  const char* file;  // of the limit
  int64_t value;     // 0: no limit
};

// Fills slot `index` of the pair; the two wishes share one folder where they may (version 2).
void make_group(const Wish& wish, const std::string& name, size_t index, CgroupPair& pair) {
  if (wish.value == 0 || wish.base.folder.empty()) return;
  const std::string folder = wish.base.folder + "/" + name;
  if (::mkdir(folder.c_str(), 0755) == 0) {
    pair.folders.push_back(folder);
  } else if (errno != EEXIST) {
    pair.errors[index] = errno;
    return;
  }
  if (!write_value(folder + "/" + wish.file, wish.value)) {
    pair.errors[index] = errno != 0 ? errno : EIO;
    return;
  }
  pair.procs[index] =
      FileDescriptor(::open((folder + "/cgroup.procs").c_str(), O_WRONLY | O_CLOEXEC));
  if (!pair.procs[index].valid()) pair.errors[index] = errno;
}

}  // namespace

CgroupPlan plan_cgroups(std::string_view mounts, std::string_view membership) {
  const std::vector<Mount> found = cgroup_mounts(mounts);
  return {find_base(found, membership, "memory"), find_base(found, membership, "pids")};
}

CgroupPlan plan_cgroups_of_this_process() {
  const auto mounts = read_file("/proc/self/mountinfo", kFileBytesMax);
  const auto membership = read_file("/proc/self/cgroup", kFileBytesMax);
  if (!mounts || !membership) return {{"", false, "no /proc"}, {"", false, "no /proc"}};
  CgroupPlan plan = plan_cgroups(*mounts, *membership);
  remove_stale(plan.memory);
  remove_stale(plan.pids);
  return plan;
}

CgroupPair make_cgroups(const CgroupPlan& plan, const RoomOptions& options) {
  CgroupPair pair;
  const std::string name = fresh_name();
  const bool unified_memory = plan.memory.unified;
  make_group(
      {plan.memory, unified_memory ? "memory.max" : "memory.limit_in_bytes", options.memory_bytes},
      name, 0, pair);
  make_group({plan.pids, "pids.max", options.processes_max}, name, 1, pair);
  return pair;
}

void CgroupPair::remove() {
  for (FileDescriptor& fd : procs) fd.reset();
  for (const std::string& folder : folders) ::rmdir(folder.c_str());
  folders.clear();
}

int enter_cgroup(int procs_fd) {
  // "0" is the writing process itself.
  return ::write(procs_fd, "0", 1) == 1 ? 0 : errno;
}

}  // namespace ke::os
