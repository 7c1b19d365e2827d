// SPDX-License-Identifier: Apache-2.0
//
// The order inside the child matters: first it is bound to its parent's life, then it joins its
// control groups, becomes root of its own user namespace, builds its file system, gives away every
// privilege, and only at the very end loses the system calls that it needed for all this. It tells
// the parent what worked through a pipe; the pipe's end says that exec succeeded.
#include "os/start_child.hpp"

#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "base/assert.hpp"
#include "os/file_system.hpp"
#include "os/sandbox_plan.hpp"

namespace ke::os {

namespace {

// Why a child could not start at all.
enum class Step : int32_t { none, descriptors, limits, directory, exec };

// What the child reports, in one write.
struct ChildNote {
  Step failed = Step::none;
  int32_t reason = 0;                      // errno of the failed step
  int32_t missing[kProtectionCount] = {};  // errno of each protection that was not to be had
};

constexpr size_t at(Protection protection) { return static_cast<size_t>(protection); }

struct Limit {
  int resource;
  rlimit value;
  bool in_own_user_namespace = false;  // elsewhere it would count the user's other processes too
};

// The parent's preparations: plain pointers and numbers for the child.
struct Prepared {
  const StartOptions* options = nullptr;
  const Room::Plan* plan = nullptr;  // null: no room
  std::vector<char*> argv, environment;
  std::vector<Limit> limits;
  std::optional<cpu_set_t> processors;
  std::vector<InheritedDescriptor> moves;  // 0 to 2, the listed ones, then the status pipe; by `to`
  std::vector<int> parked;                 // scratch for the child, one a move
  int null_fd = -1;
  int status_fd = -1;  // number in the parent; in the child it becomes the last move's `to`
  int status_read = -1;
  int cgroup_fds[2] = {-1, -1};
  uint64_t clone_flags = 0;
  int* thread_id_address = nullptr;  // where the C library keeps this thread's id
  ChildNote note;                    // starts with what the parent knows to be missing
};

constexpr struct {
  Protection protection;
  uint64_t flag;
} kNamespaces[] = {{Protection::user, CLONE_NEWUSER}, {Protection::mnt, CLONE_NEWNS},
                   {Protection::pid, CLONE_NEWPID},   {Protection::net, CLONE_NEWNET},
                   {Protection::ipc, CLONE_NEWIPC},   {Protection::uts, CLONE_NEWUTS}};

// --- In the child: system calls alone -----------------------------------------------------------

[[noreturn]] void give_up(const Prepared& prepared, int status_fd, Step step) {
  ChildNote note = prepared.note;
  note.failed = step;
  note.reason = errno;
  [[maybe_unused]] const ssize_t written = ::write(status_fd, &note, sizeof note);
  ::_exit(127);
}

int write_text(const char* path, const char* text, size_t bytes) {
  const int fd = ::open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return errno;
  const int reason = ::write(fd, text, bytes) == static_cast<ssize_t>(bytes) ? 0 : errno;
  ::close(fd);
  return reason;
}

// "ID ID 1\n" without the C library's printing, which may allocate.
int write_identity_map(const char* path, unsigned id) {
  char digits[16];
  size_t count = 0;
  do {
    digits[count++] = static_cast<char>('0' + id % 10);
    id /= 10;
  } while (id != 0);
  char text[48];
  size_t bytes = 0;
  for (int repeat = 0; repeat < 2; ++repeat) {
    for (size_t i = count; i > 0; --i) text[bytes++] = digits[i - 1];
    text[bytes++] = ' ';
  }
  text[bytes++] = '1';
  text[bytes++] = '\n';
  return write_text(path, text, bytes);
}

int map_own_user(uid_t user, gid_t group) {
  const int denied = write_text("/proc/self/setgroups", "deny", 4);
  const int users = write_identity_map("/proc/self/uid_map", user);
  const int groups = write_identity_map("/proc/self/gid_map", group);
  return users != 0 ? users : groups != 0 ? groups : denied;
}

void reset_signals() {
  for (int signal = 1; signal < NSIG; ++signal) {
    struct sigaction action {};
    action.sa_handler = SIG_DFL;
    ::sigaction(signal, &action, nullptr);
  }
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

void drop_privileges() {
  for (unsigned long capability = 0; capability < 64; ++capability) {
    if (::prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0) break;
  }
  ::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  const __user_cap_data_struct nothing[2] = {};
  ::syscall(SYS_capset, &header, nothing);
}

// Each protection stands alone: what fails is noted, the others still hold.
void enter_room(Prepared& prepared, uid_t user, gid_t group) {
  const Room::Plan& plan = *prepared.plan;
  int32_t* missing = prepared.note.missing;
  const auto wanted = [&](Protection protection) { return missing[at(protection)] == 0; };
  for (const Protection limit : {Protection::memory, Protection::pids}) {
    const int fd = prepared.cgroup_fds[limit == Protection::memory ? 0 : 1];
    if (fd >= 0) missing[at(limit)] = enter_cgroup(fd);
  }
  if ((prepared.clone_flags & CLONE_NEWUSER) != 0) {
    missing[at(Protection::user)] = map_own_user(user, group);
  }
  if (wanted(Protection::uts) && ::sethostname("room", 4) != 0) {
    missing[at(Protection::uts)] = errno;
  }
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (wanted(Protection::mnt)) missing[at(Protection::mnt)] = enter_filesystem(plan.filesystem);
  missing[at(Protection::landlock)] = enter_landlock(plan.landlock, wanted(Protection::mnt));
  drop_privileges();
}

// Brings each descriptor to its number. All are first parked above every number in use, because
// one's target may be another's source.
void arrange_descriptors(Prepared& prepared) {
  const int above = prepared.moves.back().to + 1;
  for (size_t i = 0; i < prepared.moves.size(); ++i) {
    prepared.parked[i] = ::fcntl(prepared.moves[i].from, F_DUPFD_CLOEXEC, above);
    if (prepared.parked[i] < 0) give_up(prepared, prepared.status_fd, Step::descriptors);
  }
  int next = 0;  // everything below is settled
  for (size_t i = 0; i < prepared.moves.size(); ++i) {
    const int to = prepared.moves[i].to;
    if (next < to) ::close_range(static_cast<unsigned>(next), static_cast<unsigned>(to - 1), 0);
    const bool last = i + 1 == prepared.moves.size();  // the status pipe ends with exec
    if (::dup3(prepared.parked[i], to, last ? O_CLOEXEC : 0) < 0) {
      give_up(prepared, prepared.parked.back(), Step::descriptors);
    }
    next = to + 1;
  }
  ::close_range(static_cast<unsigned>(next), ~0U, 0);
}

// A bare clone leaves the parent's thread id in the C library's notes (mutexes and raise look
// there) and forgets the list of robust mutexes; fork() would have corrected both.
void repair_thread(int* thread_id_address, void* robust_list) {
  if (thread_id_address != nullptr) {
    *thread_id_address = static_cast<int>(::syscall(SYS_gettid));
  }
  if (robust_list != nullptr) ::syscall(SYS_set_robust_list, robust_list, size_t{24});
}

[[noreturn]] void child_main(Prepared& prepared, uid_t user, gid_t group) {
  const StartOptions& options = *prepared.options;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  ::close(prepared.status_read);  // so that a parent that is already gone is noticed below
  ::setsid();
  reset_signals();
  if (prepared.plan != nullptr) enter_room(prepared, user, group);
  const bool own_user = (prepared.clone_flags & CLONE_NEWUSER) != 0;
  for (const Limit& limit : prepared.limits) {
    if (limit.in_own_user_namespace && !own_user) continue;
    if (::setrlimit(static_cast<__rlimit_resource>(limit.resource), &limit.value) != 0) {
      give_up(prepared, prepared.status_fd, Step::limits);
    }
  }
  if (prepared.processors &&
      ::sched_setaffinity(0, sizeof *prepared.processors, &*prepared.processors) != 0) {
    give_up(prepared, prepared.status_fd, Step::limits);
  }
  arrange_descriptors(prepared);
  const int status = prepared.moves.back().to;
  if (!options.working_directory.empty() && ::chdir(options.working_directory.c_str()) != 0) {
    give_up(prepared, status, Step::directory);
  }
  if (prepared.plan != nullptr && !prepared.plan->filter.empty()) {
    prepared.note.missing[at(Protection::seccomp)] = enter_filter(prepared.plan->filter);
  }
  if (::write(status, &prepared.note, sizeof prepared.note) != sizeof prepared.note) ::_exit(127);
  if (options.entry != nullptr) {
    ::close(status);
    ::_exit(options.entry(options.argument));
  }
  ::execve(options.path.c_str(), prepared.argv.data(), prepared.environment.data());
  give_up(prepared, status, Step::exec);
}

// --- In the parent ------------------------------------------------------------------------------

std::vector<char*> pointers_to(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (const std::string& text : strings) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

std::vector<Limit> limits_of(const ResourceLimits& wanted, const Room::Plan* plan) {
  std::vector<Limit> limits{{RLIMIT_CORE, {0, 0}}};
  const auto add = [&](int resource, std::optional<int64_t> value, int64_t grace = 0) {
    if (!value) return;
    rlimit current{};
    ::getrlimit(static_cast<__rlimit_resource>(resource), &current);
    const auto hard = std::min(current.rlim_max, static_cast<rlim_t>(*value + grace));
    limits.push_back({resource, {std::min(hard, static_cast<rlim_t>(*value)), hard}});
  };
  add(RLIMIT_CPU, wanted.cpu_seconds, 1);  // first SIGXCPU, a second later SIGKILL
  add(RLIMIT_AS, wanted.address_space_bytes);
  add(RLIMIT_FSIZE, wanted.file_size_bytes);
  add(RLIMIT_NOFILE, wanted.open_files);
  std::optional<int64_t> data = wanted.data_bytes, processes = wanted.processes;
  if (plan != nullptr) {
    // Below the cgroup's limits: here an allocation fails where there the process is killed, and
    // they hold even where there is no cgroup to be had.
    if (!data && plan->options.memory_bytes > 0) data = plan->options.memory_bytes;
    if (!processes && plan->options.processes_max > 0) processes = plan->options.processes_max;
  }
  add(RLIMIT_DATA, data);
  add(RLIMIT_NPROC, processes);
  if (processes && !wanted.processes) limits.back().in_own_user_namespace = true;
  return limits;
}

// Nothing where all may be used anyway.
std::optional<cpu_set_t> processors_of(const ResourceLimits& wanted) {
  cpu_set_t ours;
  CPU_ZERO(&ours);
  if (!wanted.processors || ::sched_getaffinity(0, sizeof ours, &ours) != 0) return std::nullopt;
  int left = std::max(1, *wanted.processors);
  if (CPU_COUNT(&ours) <= left) return std::nullopt;
  for (size_t processor = 0; processor < CPU_SETSIZE; ++processor) {
    if (CPU_ISSET(processor, &ours) && --left < 0) CPU_CLR(processor, &ours);
  }
  return ours;
}

Result<void> prepare_descriptors(Prepared& prepared) {
  for (int number = 0; number < 3; ++number) {
    const int given = prepared.options->standard[number];
    prepared.moves.push_back({given >= 0 ? given : prepared.null_fd, number});
  }
  for (const InheritedDescriptor& descriptor : prepared.options->descriptors) {
    if (descriptor.from < 0 || descriptor.to < 3) {
      return Error{Errc::invalid, "a child's descriptor must have a number of at least 3"};
    }
    prepared.moves.push_back(descriptor);
  }
  std::sort(prepared.moves.begin(), prepared.moves.end(),
            [](const auto& a, const auto& b) { return a.to < b.to; });
  for (size_t i = 1; i < prepared.moves.size(); ++i) {
    if (prepared.moves[i].to == prepared.moves[i - 1].to) {
      return Error{Errc::invalid, "two of a child's descriptors have the same number"};
    }
  }
  prepared.moves.push_back({prepared.status_fd, prepared.moves.back().to + 1});
  prepared.parked.resize(prepared.moves.size());
  return {};
}

uint64_t wanted_namespaces(const Room::Plan* plan) {
  uint64_t flags = 0;
  if (plan == nullptr) return flags;
  for (const auto& entry : kNamespaces) flags |= entry.flag;
  if (plan->options.network) flags &= ~uint64_t{CLONE_NEWNET};
  return flags;
}

struct Started {
  pid_t pid = -1;
  FileDescriptor pidfd;
};

Started clone_once(Prepared& prepared, uint64_t flags) {
  const uid_t user = ::geteuid();
  const gid_t group = ::getegid();
  void* robust_list = nullptr;
  size_t robust_bytes = 0;
  ::syscall(SYS_get_robust_list, 0, &robust_list, &robust_bytes);
  prepared.clone_flags = flags;
  int pidfd = -1;
  const long pid =
      ::syscall(SYS_clone, flags | CLONE_PIDFD | SIGCHLD, nullptr, &pidfd, nullptr, nullptr);
  if (pid == 0) {
    repair_thread(prepared.thread_id_address, robust_list);
    child_main(prepared, user, group);
  }
  return {static_cast<pid_t>(pid), FileDescriptor(pid > 0 ? pidfd : -1)};
}

// With all namespaces, else (root without the right to user namespaces) without that one, else with
// none: whatever is left out is noted as missing, with the reason.
Started clone_child(Prepared& prepared) {
  const uint64_t wanted = wanted_namespaces(prepared.plan);
  const ChildNote note = prepared.note;
  for (const uint64_t flags : {wanted, wanted & ~uint64_t{CLONE_NEWUSER}, uint64_t{0}}) {
    Started started = clone_once(prepared, flags);
    if (started.pid > 0 || flags == 0 || errno == EAGAIN || errno == ENOMEM) return started;
    prepared.note = note;
    const int reason = errno;
    for (const auto& entry : kNamespaces) {
      const bool lost = (wanted & entry.flag) != 0 &&
                        (entry.flag == CLONE_NEWUSER || (flags & CLONE_NEWUSER) == 0);
      if (lost) prepared.note.missing[at(entry.protection)] = reason;
    }
  }
  return {};
}

RoomReport report_of(const ChildNote& note, const Prepared& prepared) {
  RoomReport report;
  if (prepared.plan == nullptr) return report;
  const RoomOptions& options = prepared.plan->options;
  for (int i = 0; i < kProtectionCount; ++i) {
    const auto protection = static_cast<Protection>(i);
    const bool wanted = (protection != Protection::net || !options.network) &&
                        (protection != Protection::seccomp || !prepared.plan->filter.empty()) &&
                        (protection != Protection::memory || options.memory_bytes > 0) &&
                        (protection != Protection::pids || options.processes_max > 0);
    if (!wanted) continue;
    const int32_t reason = note.missing[i];
    if (reason == 0) {
      report.active.push_back(protection);
    } else {
      report.missing.push_back({protection, std::strerror(reason)});
    }
  }
  return report;
}

// The first note says what was enforced; a second one, that exec failed.
Result<ChildNote> read_notes(int status_read, const StartOptions& options) {
  ChildNote first, note;
  bool any = false;
  while (true) {
    const ssize_t count = ::read(status_read, &note, sizeof note);
    if (count < 0 && errno == EINTR) continue;
    if (count != sizeof note) break;
    if (!any) first = note;
    any = true;
    const std::string name = options.path.empty() ? "a child process" : options.path;
    switch (note.failed) {
      case Step::none:
        break;
      case Step::exec:
        return system_error(note.reason, "start " + name);
      case Step::directory:
        return system_error(note.reason, "start " + name + " in " + options.working_directory);
      case Step::limits:
        return system_error(note.reason, "limit " + name);
      case Step::descriptors:
        return system_error(note.reason, "hand descriptors to " + name);
    }
  }
  if (!any) return Error{Errc::unavailable, "a child process died before it could start"};
  return first;
}

// No signal handler of ours may run in the child before it has reset them.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

Result<void> prepare(const StartOptions& options, CgroupPair& cgroups, Prepared& prepared) {
  prepared.options = &options;
  prepared.argv = pointers_to(options.argv);
  prepared.environment = pointers_to(options.environment);
  if (options.room != nullptr) {
    prepared.plan = &options.room->plan();
    cgroups = make_cgroups(prepared.plan->cgroups, prepared.plan->options);
    for (size_t i = 0; i < 2; ++i) {
      const Protection limit = i == 0 ? Protection::memory : Protection::pids;
      prepared.cgroup_fds[i] = cgroups.procs[i].get();
      if (!cgroups.procs[i].valid()) {
        prepared.note.missing[at(limit)] = cgroups.errors[i] != 0 ? cgroups.errors[i] : ENOENT;
      }
    }
  }
  prepared.limits = limits_of(options.limits, prepared.plan);
  prepared.processors = processors_of(options.limits);
  if (options.entry != nullptr) {
    // Kernels without checkpoint support do not tell; then only the thread id stays stale.
    ::prctl(PR_GET_TID_ADDRESS, &prepared.thread_id_address, 0, 0, 0);
  }
  return prepare_descriptors(prepared);
}

}  // namespace

Result<Child> start_child(const StartOptions& options) {
  const FileDescriptor null_device(::open("/dev/null", O_RDWR | O_CLOEXEC));
  int ends[2];
  if (!null_device.valid() || ::pipe2(ends, O_CLOEXEC) != 0) {
    return system_error(errno, "start a child process");
  }
  const FileDescriptor status_read(ends[0]);
  FileDescriptor status_write(ends[1]);
  CgroupPair cgroups;
  Prepared prepared;
  prepared.null_fd = null_device.get();
  prepared.status_fd = status_write.get();
  prepared.status_read = status_read.get();
  Result<void> ready = prepare(options, cgroups, prepared);
  if (!ready) {
    cgroups.remove();
    return ready.error();
  }
  Started started;
  int reason = 0;
  {
    const SignalsBlocked blocked;
    started = clone_child(prepared);
    reason = errno;
  }
  status_write.reset();
  if (started.pid < 0) {
    cgroups.remove();
    return Error{Errc::unavailable,
                 "cannot start a child process: " + std::string(std::strerror(reason))};
  }
  Child child =
      ChildAccess::make(started.pid, std::move(started.pidfd), std::move(cgroups.folders));
  const ChildNote note = TRY(read_notes(status_read.get(), options));
  ChildAccess::set_report(child, report_of(note, prepared));
  return child;
}

}  // namespace ke::os
