// SPDX-License-Identifier: Apache-2.0
//
// The system-call filters, as allow-lists: a call that nobody thought of is refused. See
// seccomp(2).
#include <fcntl.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "os/sandbox_plan.hpp"

#ifndef SECCOMP_FILTER_FLAG_SPEC_ALLOW
#define SECCOMP_FILTER_FLAG_SPEC_ALLOW 4
#endif

namespace ke::os {

namespace {

// clang-format off
// Names and not numbers: one that this architecture lacks is skipped.
constexpr const char* kComputing[] = {
    // memory
    "mmap", "munmap", "mprotect", "mremap", "madvise", "brk", "mlock", "munlock", "msync",
    "mincore", "membarrier",
    // threads and time
    "futex", "set_robust_list", "get_robust_list", "set_tid_address", "rseq", "arch_prctl",
    "sched_yield", "sched_getaffinity", "sched_getparam", "sched_getscheduler", "getcpu",
    "nanosleep", "clock_nanosleep", "clock_gettime", "clock_getres", "gettimeofday", "time",
    "times", "exit", "exit_group", "restart_syscall",
    // signals, its own
    "rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "rt_sigtimedwait", "rt_sigsuspend",
    "rt_sigpending", "sigaltstack", "tgkill", "pause",
    // descriptors
    "read", "write", "readv", "writev", "pread64", "pwrite64", "preadv", "pwritev", "lseek",
    "close", "close_range", "dup", "dup2", "dup3", "fcntl", "poll", "ppoll", "select", "pselect6",
    "epoll_create1", "epoll_ctl", "epoll_wait", "epoll_pwait", "eventfd2", "sendmsg", "recvmsg",
    "sendto", "recvfrom", "shutdown",
    // reading files
    "open", "openat", "stat", "fstat", "lstat", "newfstatat", "statx", "access", "faccessat",
    "faccessat2", "readlink", "readlinkat", "getdents64", "getcwd", "fadvise64",
    // asking about oneself
    "getpid", "getppid", "gettid", "getuid", "geteuid", "getgid", "getegid", "getpgrp", "getpgid",
    "getsid", "getrusage", "getrlimit", "prlimit64", "sysinfo", "uname", "getrandom",
};

// Not sched_setaffinity for a kernel: it runs on as many processors as its baseline.
constexpr const char* kBuilding[] = {
    "execve", "execveat", "fork", "vfork", "wait4", "waitid", "pipe", "pipe2", "kill", "setpgid",
    "setsid", "setrlimit", "getgroups", "getresuid", "getresgid", "umask", "chdir", "fchdir",
    "creat", "unlink", "unlinkat", "rename", "renameat", "renameat2", "mkdir", "mkdirat", "rmdir",
    "link", "linkat", "symlink", "symlinkat", "chmod", "fchmod", "fchmodat", "utime", "utimes",
    "utimensat", "futimesat", "truncate", "ftruncate", "fallocate", "fsync", "fdatasync", "flock",
    "statfs", "fstatfs", "copy_file_range", "sendfile", "getxattr", "lgetxattr", "fgetxattr",
    "memfd_create", "setitimer", "getitimer", "alarm", "getpriority", "sched_setaffinity",
};

// No honest computation needs these: they end the process, and the judge sees why (SIGSYS).
constexpr const char* kHostile[] = {
    "socket", "socketpair", "connect", "bind", "listen", "accept", "accept4", "execve", "execveat",
    "fork", "vfork", "ptrace", "process_vm_readv", "process_vm_writev", "process_madvise",
    "pidfd_open", "pidfd_getfd", "pidfd_send_signal", "kcmp", "mount", "umount2", "pivot_root",
    "chroot", "setns", "unshare", "open_tree", "move_mount", "fsopen", "fsmount", "mount_setattr",
    "bpf", "io_uring_setup", "io_uring_enter", "userfaultfd", "perf_event_open", "keyctl",
    "add_key", "request_key", "init_module", "finit_module", "delete_module", "kexec_load",
    "reboot", "open_by_handle_at", "name_to_handle_at", "fanotify_init", "iopl", "ioperm",
    "modify_ldt", "syslog", "quotactl", "settimeofday", "clock_settime", "clock_adjtime",
};
// clang-format on

class FilterBuilder {
 public:
  FilterBuilder() : context_(seccomp_init(SCMP_ACT_ERRNO(EPERM))) {}
  ~FilterBuilder() {
    if (context_ != nullptr) seccomp_release(context_);
  }
  FilterBuilder(const FilterBuilder&) = delete;
  FilterBuilder& operator=(const FilterBuilder&) = delete;

  template <size_t N>
  void add(uint32_t action, const char* const (&names)[N]) {
    for (const char* name : names) add(action, name, {});
  }

  void add(uint32_t action, const char* name, std::vector<scmp_arg_cmp> when) {
    const int number = seccomp_syscall_resolve_name(name);
    if (number < 0) return;  // absent here
    failed_ |= context_ == nullptr ||
               seccomp_rule_add_array(context_, action, number, static_cast<unsigned>(when.size()),
                                      when.data()) != 0;
  }

  Result<std::vector<sock_filter>> finish() {
    const Error broken{Errc::unavailable, "cannot compile the system-call filter"};
    if (failed_ || seccomp_attr_set(context_, SCMP_FLTATR_CTL_OPTIMIZE, 2) != 0) return broken;
    // A call through another architecture's entry is never innocent.
    constexpr uint32_t kKill = SCMP_ACT_KILL_PROCESS;
    if (seccomp_attr_set(context_, SCMP_FLTATR_ACT_BADARCH, kKill) != 0) return broken;
    const FileDescriptor file(memfd_create("filter", MFD_CLOEXEC));
    if (!file.valid() || seccomp_export_bpf(context_, file.get()) != 0) return broken;
    const off_t bytes = lseek(file.get(), 0, SEEK_END);
    std::vector<sock_filter> filter(static_cast<size_t>(bytes) / sizeof(sock_filter));
    if (bytes <= 0 || pread(file.get(), filter.data(), static_cast<size_t>(bytes), 0) != bytes) {
      return broken;
    }
    return filter;
  }

 private:
  scmp_filter_ctx context_;
  bool failed_ = false;
};

void allow_clone(SystemCalls profile, FilterBuilder& builder) {
  constexpr uint64_t kNamespaces = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET |
                                   CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP;
  // Its arguments lie in memory, where a filter cannot look: the C library then uses clone.
  builder.add(SCMP_ACT_ERRNO(ENOSYS), "clone3", {});
  if (profile == SystemCalls::build) {
    builder.add(SCMP_ACT_ALLOW, "clone", {SCMP_A0(SCMP_CMP_MASKED_EQ, kNamespaces, 0)});
    return;
  }
  builder.add(SCMP_ACT_ALLOW, "clone", {SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD, CLONE_THREAD)});
  builder.add(SCMP_ACT_KILL_PROCESS, "clone", {SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD, 0)});
}

void allow_some_arguments(FilterBuilder& builder) {
  constexpr uint64_t kIsTerminal = 0x5401, kBytesWaiting = 0x541b, kNameMapping = 0x53564d41;
  for (const uint64_t request : {kIsTerminal, kBytesWaiting}) {
    builder.add(SCMP_ACT_ALLOW, "ioctl", {SCMP_A1(SCMP_CMP_MASKED_EQ, 0xffffffff, request)});
  }
  // Not PR_SET_PDEATHSIG: a child stays bound to its parent's life.
  for (const uint64_t option : {uint64_t{PR_SET_NAME}, uint64_t{PR_GET_NAME}, kNameMapping}) {
    builder.add(SCMP_ACT_ALLOW, "prctl", {SCMP_A0(SCMP_CMP_EQ, option)});
  }
}

}  // namespace

Result<std::vector<sock_filter>> compile_filter(SystemCalls profile) {
  if (profile == SystemCalls::all) return std::vector<sock_filter>();
  FilterBuilder builder;
  builder.add(SCMP_ACT_ALLOW, kComputing);
  allow_clone(profile, builder);
  allow_some_arguments(builder);
  if (profile == SystemCalls::build) {
    builder.add(SCMP_ACT_ALLOW, kBuilding);
  } else {
    builder.add(SCMP_ACT_KILL_PROCESS, kHostile);
  }
  return builder.finish();
}

int enter_filter(const std::vector<sock_filter>& filter) {
  sock_fprog program{static_cast<unsigned short>(filter.size()),
                     const_cast<sock_filter*>(filter.data())};
  // Without SPEC_ALLOW, kernels before 5.16 slow the process down (speculative store bypass), and
  // a candidate would be measured slower than its baseline.
  if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_SPEC_ALLOW, &program) ==
      0) {
    return 0;
  }
  return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0 ? 0 : errno;
}

}  // namespace ke::os
