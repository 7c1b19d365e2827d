// SPDX-License-Identifier: Apache-2.0
#include "os/sandbox.hpp"

#include <fcntl.h>
#include <sched.h>

#include <algorithm>
#include <cerrno>

#include "base/assert.hpp"
#include "os/file_system.hpp"
#include "os/sandbox_plan.hpp"
#include "os/start_child.hpp"

namespace ke::os {

std::string RoomReport::protections() const {
  std::string text;
  for (const Protection protection : active) {
    if (!text.empty()) text += ',';
    text += enum_name(protection);
  }
  return text;
}

bool RoomReport::has(Protection protection) const {
  return std::find(active.begin(), active.end(), protection) != active.end();
}

std::vector<VisiblePath> toolchain_paths() {
  std::vector<VisiblePath> paths;
  for (const char* path : {"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32",
                           "/etc/alternatives", "/etc/ld.so.cache"}) {
    paths.push_back({.host = path, .optional = true});
  }
  return paths;
}

Room::Room(std::unique_ptr<Plan> plan) : plan_(std::move(plan)) {}
Room::Room(Room&&) noexcept = default;
Room& Room::operator=(Room&&) noexcept = default;
Room::~Room() = default;

Result<Room> Room::prepare(const RoomOptions& options) {
  KE_ASSERT(options.tmp_bytes >= 0 && options.memory_bytes >= 0 && options.processes_max >= 0);
  auto plan = std::make_unique<Plan>();
  plan->options = options;
  plan->filesystem = TRY(plan_filesystem(options));
  plan->landlock = plan_landlock(options);
  plan->filter = TRY(compile_filter(options.system_calls));
  if (options.memory_bytes > 0 || options.processes_max > 0) {
    plan->cgroups = plan_cgroups_of_this_process();
  }
  return Room(std::move(plan));
}

bool Room::can_exec() const { return plan_->options.system_calls != SystemCalls::run; }

Result<Child> clone_into_room(const Room& room, const CloneOptions& options) {
  KE_ASSERT(options.entry != nullptr);
  StartOptions start;
  start.entry = options.entry;
  start.argument = options.argument;
  start.working_directory = options.working_directory;
  start.limits = options.limits;
  start.room = &room;
  for (const int fd : options.descriptors) {
    if (fd >= 0 && fd < 3) {
      start.standard[fd] = fd;
    } else {
      start.descriptors.push_back({fd, fd});
    }
  }
  return start_child(start);
}

Result<Door> open_door(const Room& room, const Child& init) {
  const RoomReport& report = init.report();
  for (const Protection needed : {Protection::mnt, Protection::pid}) {
    if (report.has(needed)) continue;
    return Error{Errc::unavailable, "rooms here have no namespace of their own (" +
                                        std::string(enum_name(needed)) + ")"};
  }
  Door door;
  for (const auto& [protection, flag] : {std::pair{Protection::user, CLONE_NEWUSER},
                                         {Protection::mnt, CLONE_NEWNS},
                                         {Protection::pid, CLONE_NEWPID},
                                         {Protection::net, CLONE_NEWNET},
                                         {Protection::ipc, CLONE_NEWIPC},
                                         {Protection::uts, CLONE_NEWUTS}}) {
    if (report.has(protection)) door.namespaces |= flag;
  }
  if (report.has(Protection::landlock)) {
    const std::string root = "/proc/" + std::to_string(init.pid()) + "/root";
    int ruleset = -1;
    const int reason = make_ruleset(room.plan().landlock, true, root.c_str(), ruleset);
    door.ruleset = FileDescriptor(ruleset);
    if (reason != 0) return system_error(reason, "look into a room");
  }
  for (const std::string& group : init.cgroups()) {
    door.cgroups.emplace_back(::open((group + "/cgroup.procs").c_str(), O_WRONLY | O_CLOEXEC));
    if (!door.cgroups.back().valid()) return system_error(errno, "open the control group " + group);
  }
  return door;
}

Result<RoomReport> probe_protections() {
  RoomOptions options;
  options.paths = toolchain_paths();
  options.memory_bytes = int64_t{1} << 30;
  options.processes_max = 64;
  const Room room = TRY(Room::prepare(options));
  CloneOptions clone;
  clone.entry = [](void*) { return 0; };
  Child child = TRY(clone_into_room(room, clone));
  return child.report();
}

}  // namespace ke::os
