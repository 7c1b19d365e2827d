// SPDX-License-Identifier: Apache-2.0
//
// Which protections a room really had. A missing one is data, for `doctor` and for every
// evaluation's record, not an error.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/enum_names.hpp"

namespace ke::os {

// Namespaces first; then the system-call filter, Landlock, and the cgroup limits.
enum class Protection : uint8_t { user, mnt, pid, net, ipc, uts, seccomp, landlock, memory, pids };
inline constexpr int kProtectionCount = 10;

struct MissingProtection {
  Protection protection;
  std::string why;  // "Operation not permitted"
};

struct RoomReport {
  std::vector<Protection> active;
  std::vector<MissingProtection> missing;  // wanted but not to be had

  std::string protections() const;  // "user,mnt,pid,net,ipc,uts,seccomp"
  bool has(Protection protection) const;
};

}  // namespace ke::os

template <>
inline constexpr std::array<std::string_view, 10> ke::kEnumNames<ke::os::Protection>{
    "user", "mnt", "pid", "net", "ipc", "uts", "seccomp", "landlock", "memory", "pids"};
