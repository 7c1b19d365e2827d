// SPDX-License-Identifier: Apache-2.0
//
// Rooms: locked places for code that is not trusted. A room is prepared once (the system-call
// filter is compiled, paths are checked) and then used for any number of children, each of which
// gets fresh namespaces, a private /tmp and limits of its own. Inside, the root is read-only and
// made of the listed paths alone, there is no network (not even loopback), no other process is
// visible, and no privilege can be gained. The first process of the room is its init: when it ends,
// everything in the room is killed by the kernel.
//
// What the machine cannot enforce is left out and reported (RoomReport); nothing here fails for
// that reason. See namespaces(7), seccomp(2), landlock(7), cgroups(7).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "os/file_descriptor.hpp"
#include "os/process.hpp"
#include "os/sandbox_report.hpp"

namespace ke::os {

struct VisiblePath {
  std::string host;    // absolute; a file or a folder. Skipped when `optional` and absent
  std::string inside;  // where it appears; empty: at the same path
  bool writable = false;
  bool optional = false;
  bool device = false;  // a node that may be opened as the device it stands for
};

// Which system calls work. `run`: for a kernel that computes (memory, threads, descriptors it was
// given, reading files); socket, execve, ptrace and the like end it with SIGSYS, the rest is EPERM.
// `build`: for compilers (also processes, pipes, files); the rest is EPERM.
// `all`: no filter, for trusted programs that merely shall not wander.
enum class SystemCalls : uint8_t { all, build, run };

struct RoomOptions {
  std::vector<VisiblePath> paths;  // see toolchain_paths()
  SystemCalls system_calls = SystemCalls::run;
  bool network = false;           // true: stays in our network namespace
  bool proc = true;               // a read-only /proc of the room's own processes
  bool proc_whole = false;        // also /proc/cpuinfo, meminfo and the like
  bool proc_writable = false;     // it may change what /proc says of itself (thread names)
  int64_t tmp_bytes = 256 << 20;  // size of the private /tmp (memory); 0: none
  int64_t memory_bytes = 0;       // of all its processes, /tmp included; 0: unlimited
  int32_t processes_max = 0;      // processes and threads; 0: unlimited
};

// /usr, /bin, /lib*, /etc/alternatives and the loader's cache, read-only: what a compiler or a
// dynamically linked program needs. Works for merged and unmerged /usr.
std::vector<VisiblePath> toolchain_paths();

// The filter, the paths and the limits, ready for use by children. Immutable; safe to use from many
// threads. Must outlive its children's start, not their life.
class Room {
 public:
  // Errc::invalid when a path is not absolute, Errc::not_found when one does not exist.
  static Result<Room> prepare(const RoomOptions& options);
  Room(Room&&) noexcept;
  Room& operator=(Room&&) noexcept;
  ~Room();

  // Whether programs can be started in it (not under SystemCalls::run).
  bool can_exec() const;

  struct Plan;  // for os/ alone
  const Plan& plan() const { return *plan_; }

 private:
  explicit Room(std::unique_ptr<Plan> plan);
  std::unique_ptr<Plan> plan_;
};

struct CloneOptions {
  int (*entry)(void* argument) = nullptr;  // its return value is the child's exit code
  void* argument = nullptr;
  std::vector<int> descriptors;  // kept, with their numbers; all others are closed, 0 to 2 are
                                 // /dev/null unless listed
  ResourceLimits limits;
  std::string working_directory = "/";
};

// Forks the calling process into the room, without exec: the warm start. The caller must be
// single-threaded (the child continues with a copy of its memory; locks held by other threads would
// stay locked for ever). Environment and memory are the caller's: keep no secrets there. The child
// never returns from this call: it runs entry() and exits with _exit (no destructors, no flush).
// To run a program in a room, use spawn() or run() with ProcessOptions::room.
Result<Child> clone_into_room(const Room& room, const CloneOptions& options);

// What a process that runs already needs to move into the room of a child of ours, which stays the
// room's init: it joins the namespaces (setns(2), by the child's pidfd), writes "0" to each cgroup
// and restricts itself by the ruleset. See py/kernelevolve/zygote.py.
struct Door {
  int namespaces = 0;                   // CLONE_NEW… flags
  FileDescriptor ruleset;               // of Landlock; invalid where the room has none
  std::vector<FileDescriptor> cgroups;  // their cgroup.procs
};

// Errc::unavailable when the room has no mount or no process namespace of its own: then whoever
// moved in would not be locked up, nor end with its init.
Result<Door> open_door(const Room& room, const Child& init);

// Sends to the process group of `member`, and to every other process of the room it is in, whatever
// its group or session: all of them where rooms have a process namespace of their own.
void signal_room(pid_t member, int signal);
// By their numbers outside; none where the room shares our namespace.
std::vector<pid_t> processes_in_room_of(pid_t member);

// What all processes of that room hold together: how many they are, and memory of their own, of
// which each counts what it shares with its parent. For machines whose kernel sets no limit.
struct RoomUse {
  int64_t processes = 0;
  int64_t memory_bytes = 0;
};
RoomUse use_of_room(pid_t member);

// Starts a child in a room with everything asked for and says what was enforced. For `doctor`.
Result<RoomReport> probe_protections();

}  // namespace ke::os
