// SPDX-License-Identifier: Apache-2.0
//
// Internal to os/: a room as its children need it. Everything that may allocate, fail or look
// around happens while the plan is made; the enter_* functions run in a fresh child, between clone
// and exec, and use system calls alone (async-signal-safe, no allocation, no locks).
#pragma once

#include <linux/filter.h>

#include <array>
#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "os/file_descriptor.hpp"
#include "os/sandbox.hpp"

namespace ke::os {

// --- The file system: a read-only root of bind mounts -------------------------------------------
struct FilesystemPlan {
  enum class Kind : uint8_t { folder, file, link, bind, memory };
  struct Entry {
    Kind kind;
    std::string at;      // absolute on the host while the root is built: base + path inside
    std::string source;  // bind: what; link: its text; memory: tmpfs options
    bool writable = false;
    bool device = false;
  };
  std::string base;            // folder of the host over which the new root is mounted
  std::vector<Entry> entries;  // in order; parents first
  std::string proc;            // where to mount /proc; empty: nowhere
  bool proc_whole = false;     // not only the processes
  bool proc_writable = false;
  static constexpr int kBindsMax = 96;
};
Result<FilesystemPlan> plan_filesystem(const RoomOptions& options);
int enter_filesystem(const FilesystemPlan& plan);  // 0, or errno

// --- System calls --------------------------------------------------------------------------------
Result<std::vector<sock_filter>> compile_filter(SystemCalls profile);  // empty for `all`
int enter_filter(const std::vector<sock_filter>& filter);

// --- Landlock: no writing outside, a second wall behind the mounts
// ---------------------------------
struct LandlockPlan {
  std::vector<std::string> readable;  // as seen from the host, when there is no mount namespace
  std::vector<std::string> writable;  // as seen from inside
};
LandlockPlan plan_landlock(const RoomOptions& options);
// A ruleset for what is below the folder `root`, as seen from inside when it is a room's root.
// `new_root`: the mounts are in place, everything visible may be read. 0, or errno; the caller
// closes the ruleset unless it is -1.
int make_ruleset(const LandlockPlan& plan, bool new_root, const char* root, int& ruleset);
int enter_landlock(const LandlockPlan& plan, bool new_root);

// --- cgroups: memory and processes
// -----------------------------------------------------------------
struct CgroupBase {
  std::string folder;    // where to make children; empty when there is none
  bool unified = false;  // version 2
  std::string why_missing;
};
struct CgroupPlan {
  CgroupBase memory, pids;
};
// `mounts` and `membership` are the contents of /proc/self/mountinfo and /proc/self/cgroup.
CgroupPlan plan_cgroups(std::string_view mounts, std::string_view membership);
CgroupPlan plan_cgroups_of_this_process();

// One child's own groups. Entered by the child through the descriptors; removed when it has ended.
struct CgroupPair {
  std::vector<std::string> folders;
  std::array<FileDescriptor, 2> procs;  // open cgroup.procs files: memory, pids (may be the same)
  std::array<int, 2> errors{};          // errno where one could not be made
  void remove();
};
CgroupPair make_cgroups(const CgroupPlan& plan, const RoomOptions& options);
int enter_cgroup(int procs_fd);  // 0, or errno

// --- The whole
// --------------------------------------------------------------------------------------
struct Room::Plan {
  RoomOptions options;
  FilesystemPlan filesystem;
  LandlockPlan landlock;
  std::vector<sock_filter> filter;
  CgroupPlan cgroups;
};

}  // namespace ke::os
