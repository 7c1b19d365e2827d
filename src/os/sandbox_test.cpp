// SPDX-License-Identifier: Apache-2.0
//
// Attacks on the room. Each runs in a child whose exit code says what it could do.
#include "os/sandbox.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <thread>
#include <vector>

#include "os/file_system.hpp"
#include "os/sandbox_plan.hpp"
#include "os/shared_memory.hpp"

namespace ke::os {
namespace {

using namespace std::chrono_literals;

RoomOptions kernel_room() {
  RoomOptions options;
  options.paths = toolchain_paths();
  return options;
}

RoomOptions build_room() {
  RoomOptions options = kernel_room();
  options.system_calls = SystemCalls::build;
  return options;
}

struct Outcome {
  ExitStatus status;
  RoomReport report;
};

Outcome attack(const RoomOptions& options, int (*entry)(void*), void* argument = nullptr,
               std::vector<int> descriptors = {}) {
  const Room room = Room::prepare(options).value();
  CloneOptions clone;
  clone.entry = entry;
  clone.argument = argument;
  clone.descriptors = std::move(descriptors);
  Child child = clone_into_room(room, clone).value();
  const std::optional<ExitStatus> status = child.wait(30s).value();
  if (!status) ADD_FAILURE() << "the child did not end";
  return {status.value_or(ExitStatus{}), child.report()};
}

#define SKIP_WITHOUT(outcome, protection)                              \
  if (!(outcome).report.has(Protection::protection)) {                 \
    GTEST_SKIP() << "this machine cannot enforce it: " << #protection; \
  }

TEST(Room, ReportsWhatItEnforces) {
  const RoomReport report = probe_protections().value();
  for (const MissingProtection& missing : report.missing) EXPECT_NE(missing.why, "");
  EXPECT_EQ(report.active.size() + report.missing.size(), size_t{kProtectionCount});
  if (report.missing.empty()) {
    EXPECT_EQ(report.protections(), "user,mnt,pid,net,ipc,uts,seccomp,landlock,memory,pids");
  }
}

TEST(Room, RunsCodeOfTheCallerWithItsMemory) {
  int value = 17;
  const Outcome outcome = attack(
      kernel_room(),
      [](void* argument) {
        std::vector<int> numbers(1000, *static_cast<int*>(argument));  // the heap works
        int sum = 0;
        std::thread thread([&] { sum = numbers[0] + numbers[999]; });  // and so do threads
        thread.join();
        return sum;
      },
      &value);
  EXPECT_EQ(outcome.status.code, 34) << outcome.status.to_string();
}

TEST(Room, SeesNoOtherProcess) {
  const Outcome outcome = attack(build_room(), [](void*) {
    int seen = 0;
    for (pid_t pid = 1; pid < 40000; ++pid) seen += ::kill(pid, 0) == 0 || errno == EPERM ? 1 : 0;
    return seen * 10 + static_cast<int>(getpid());
  });
  SKIP_WITHOUT(outcome, pid);
  EXPECT_EQ(outcome.status.code, 11);  // itself alone, as process 1
}

TEST(Room, CannotWriteOutside) {
  const TemporaryDirectory folder = TemporaryDirectory::create().value();
  RoomOptions options = build_room();
  options.paths.push_back({.host = folder.path().string()});
  std::string path = folder.path().string();
  const Outcome outcome = attack(
      options,
      [](void* argument) {
        const std::string& visible = *static_cast<std::string*>(argument);
        int bits = 0;
        const auto can_write = [](const std::string& name) {
          return ::open(name.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600) >= 0;
        };
        if (can_write("/usr/x")) bits |= 1;
        if (can_write("/x")) bits |= 2;
        if (can_write(visible + "/x")) bits |= 4;
        if (!can_write("/tmp/x")) bits |= 8;
        if (can_write("/proc/self/mem")) bits |= 16;
        if (can_write("/proc/sys/kernel/core_pattern")) bits |= 32;
        if (::mkdir("/dev/x", 0700) == 0 || ::unlink("/usr/bin/env") == 0) bits |= 64;
        return bits;
      },
      &path);
  SKIP_WITHOUT(outcome, mnt);
  EXPECT_EQ(outcome.status.code, 0);
  EXPECT_TRUE(list_directory(folder.path()).value().empty());
}

TEST(Room, SeesOnlyListedFiles) {
  const Outcome outcome = attack(kernel_room(), [](void*) {
    int bits = 0;
    if (::access("/etc/passwd", F_OK) == 0) bits |= 1;
    if (::access("/root", F_OK) == 0 || ::access("/home", F_OK) == 0) bits |= 2;
    if (::access("/sys", F_OK) == 0) bits |= 4;
    if (::access("/usr/bin", R_OK) != 0 || ::access("/dev/null", W_OK) != 0) bits |= 8;
    if (::access("/bin/sh", X_OK) != 0) bits |= 16;
    if (::access("/proc/self/maps", R_OK) != 0) bits |= 32;
    if (::access("/proc/kcore", F_OK) == 0) bits |= 64;
    return bits;
  });
  SKIP_WITHOUT(outcome, mnt);
  EXPECT_EQ(outcome.status.code, 0);
}

TEST(Room, WorkFolderBelowTmpIsSharedAndTheRestOfTmpIsPrivate) {
  const TemporaryDirectory folder = TemporaryDirectory::create().value();
  RoomOptions options = build_room();
  options.paths.push_back(
      {.host = folder.path().string(), .inside = "/tmp/shared", .writable = true});
  const Outcome outcome = attack(options, [](void*) {
    const int fd = ::open("/tmp/shared/result", O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
    return ::write(fd, "made inside", 11) == 11 && ::mkdir("/tmp/private", 0755) == 0 ? 0 : errno;
  });
  SKIP_WITHOUT(outcome, mnt);
  EXPECT_EQ(outcome.status.code, 0);
  EXPECT_EQ(read_file(folder.path() / "result", 100).value(), "made inside");
  EXPECT_FALSE(os::exists("/tmp/private"));
}

TEST(Room, TmpHasALimit) {
  RoomOptions options = build_room();
  options.tmp_bytes = 1 << 20;
  const Outcome outcome = attack(options, [](void*) {
    const int fd = ::open("/tmp/big", O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
    const std::vector<char> much(4 << 20, 'x');
    const ssize_t first = ::write(fd, much.data(), much.size());
    return first <= 1 << 20 && ::write(fd, much.data(), much.size()) < 0 ? errno : 0;
  });
  SKIP_WITHOUT(outcome, mnt);
  EXPECT_EQ(outcome.status.code, ENOSPC);
}

TEST(Room, HasNoNetworkEvenWhereSocketsAreAllowed) {
  RoomOptions options = kernel_room();
  options.system_calls = SystemCalls::all;
  const Outcome outcome = attack(options, [](void*) {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr address{AF_INET, {0, 80, 127, 0, 0, 1}};
    return fd < 0 || ::connect(fd, &address, sizeof address) != 0 ? errno : 0;
  });
  SKIP_WITHOUT(outcome, net);
  EXPECT_EQ(outcome.status.code, ENETUNREACH);
}

struct Call {
  const char* name;
  int (*entry)(void*);
};

TEST(Room, HostileCallsEndAKernel) {
  const Call calls[] = {
      {"socket", [](void*) { return ::socket(AF_UNIX, SOCK_STREAM, 0); }},
      {"fork", [](void*) { return static_cast<int>(::fork()); }},
      {"vfork", [](void*) { return static_cast<int>(::syscall(SYS_vfork)); }},
      {"clone", [](void*) { return static_cast<int>(::syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0)); }},
      {"execve",
       [](void*) {
         char* const argv[] = {nullptr};
         return ::execve("/bin/true", argv, argv);
       }},
      {"ptrace", [](void*) { return static_cast<int>(::ptrace(PTRACE_TRACEME, 0, 0, 0)); }},
      {"unshare", [](void*) { return ::unshare(CLONE_NEWUSER); }},
      {"io_uring", [](void*) { return static_cast<int>(::syscall(425, 1, nullptr)); }},
      {"bpf", [](void*) { return static_cast<int>(::syscall(SYS_bpf, 0, nullptr, 0)); }},
      {"mount", [](void*) { return static_cast<int>(::syscall(SYS_mount, "", "", "", 0, "")); }}};
  for (const Call& call : calls) {
    SCOPED_TRACE(call.name);
    const Outcome outcome = attack(kernel_room(), call.entry);
    SKIP_WITHOUT(outcome, seccomp);
    EXPECT_EQ(outcome.status.signal, SIGSYS) << outcome.status.to_string();
  }
}

TEST(Room, OtherCallsAreRefusedToAKernel) {
  const Call calls[] = {
      {"clone3", [](void*) { return ::syscall(SYS_clone3, nullptr, 0) < 0 ? errno : 0; }},
      {"kill", [](void*) { return ::kill(1, SIGSTOP) < 0 ? errno : 0; }},
      {"unlink", [](void*) { return ::unlink("/tmp/x") < 0 ? errno : 0; }},
      {"ftruncate", [](void*) { return ::ftruncate(0, 0) < 0 ? errno : 0; }},
      {"chdir", [](void*) { return ::chdir("/usr") < 0 ? errno : 0; }},
      {"other processors",
       [](void*) {
         cpu_set_t all;
         memset(&all, 0xff, sizeof all);
         return ::sched_setaffinity(0, sizeof all, &all) < 0 ? errno : 0;
       }},
      {"setsid", [](void*) { return ::setsid() < 0 ? errno : 0; }},
      {"death signal", [](void*) { return ::syscall(SYS_prctl, 1, 0, 0, 0, 0) < 0 ? errno : 0; }}};
  for (const Call& call : calls) {
    SCOPED_TRACE(call.name);
    const Outcome outcome = attack(kernel_room(), call.entry);
    SKIP_WITHOUT(outcome, seccomp);
    const int expected = std::string_view(call.name) == "clone3" ? ENOSYS : EPERM;
    EXPECT_EQ(outcome.status.code, expected) << outcome.status.to_string();
  }
}

TEST(Room, NobodyGetsPrivilegesBack) {
  const Outcome outcome = attack(build_room(), [](void*) {
    int bits = 0;
    if (::unshare(CLONE_NEWNS) == 0 || ::unshare(CLONE_NEWUSER) == 0) bits |= 1;
    if (::syscall(SYS_mount, "x", "/tmp", "tmpfs", 0, nullptr) == 0) bits |= 2;
    if (::syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0) > 0) bits |= 4;
    if (::sethostname("outside", 7) == 0 || ::chroot("/usr") == 0) bits |= 8;
    if (::setuid(12345) == 0) bits |= 16;
    return bits;
  });
  EXPECT_EQ(outcome.status.code, 0);
}

TEST(Room, WhoForksAwayDiesWithTheRoom) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const FileDescriptor read_end(ends[0]);
  FileDescriptor write_end(ends[1]);
  const Outcome outcome =
      attack(build_room(),
             [](void*) {
               for (int i = 0; i < 3; ++i) {
                 if (::fork() != 0) continue;
                 ::setsid();
                 ::signal(SIGTERM, SIG_IGN);
                 if (::fork() != 0) ::_exit(0);
                 while (true) ::pause();  // an orphan in a session of its own, holding the pipe
               }
               return 0;
             },
             nullptr, {write_end.get()});
  SKIP_WITHOUT(outcome, pid);
  write_end.reset();
  char byte = 0;
  EXPECT_EQ(read(read_end.get(), &byte, 1), 0);  // ends only when all of them are gone
}

TEST(Room, KillTakesAllAtOnceHoweverTheyIgnoreIt) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const FileDescriptor read_end(ends[0]);
  FileDescriptor write_end(ends[1]);
  const Room room = Room::prepare(build_room()).value();
  CloneOptions clone;
  clone.entry = [](void* fd) {
    for (int signal = 1; signal < 32; ++signal) ::signal(signal, SIG_IGN);
    const pid_t inner = ::fork();
    if (inner == 0) ::setsid();
    if (inner == 0) [[maybe_unused]]
      const ssize_t ready = ::write(*static_cast<int*>(fd), "r", 1);
    while (true) ::pause();
    return 0;
  };
  int number = write_end.get();
  clone.argument = &number;
  clone.descriptors = {number};
  Child child = clone_into_room(room, clone).value();
  write_end.reset();
  char byte = 0;
  ASSERT_EQ(read(read_end.get(), &byte, 1), 1);
  EXPECT_EQ(child.kill().signal, SIGKILL);
  if (!child.report().has(Protection::pid)) GTEST_SKIP() << "no pid namespaces";
  EXPECT_EQ(read(read_end.get(), &byte, 1), 0);
}

TEST(Room, InheritsOnlyListedDescriptors) {
  const FileDescriptor secret(memfd_create("secret", 0));
  const FileDescriptor given(memfd_create("given", MFD_CLOEXEC));
  const Outcome outcome = attack(kernel_room(),
                                 [](void*) {
                                   int open_count = 0;
                                   for (int fd = 0; fd < 1000; ++fd)
                                     open_count += ::fcntl(fd, F_GETFD) >= 0 ? 1 : 0;
                                   return open_count;
                                 },
                                 nullptr, {given.get()});
  EXPECT_EQ(outcome.status.code, 4);  // 0, 1, 2 and the given one
}

TEST(Room, CannotResizeOrRewriteSealedTensors) {
  SharedMemory tensor = SharedMemory::create(4096).value();
  ASSERT_TRUE(tensor.seal_future_writes());
  FileDescriptor read_only = tensor.reopen_read_only().value();
  int number = read_only.get();
  RoomOptions options = kernel_room();
  options.system_calls = SystemCalls::all;  // the seals hold without the filter
  const Outcome outcome =
      attack(options,
             [](void* argument) {
               const int fd = *static_cast<int*>(argument);
               int bits = 0;
               if (::ftruncate(fd, 0) == 0) bits |= 1;
               void* view = ::mmap(nullptr, 4096, PROT_READ, MAP_SHARED, fd, 0);
               if (::mprotect(view, 4096, PROT_READ | PROT_WRITE) == 0) bits |= 2;
               const std::string path = "/proc/self/fd/" + std::to_string(fd);
               const int again = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
               if (again >= 0 && ::ftruncate(again, 0) == 0) bits |= 4;
               if (again >= 0 && ::pwrite(again, "x", 1, 0) == 1) bits |= 8;
               if (::mmap(nullptr, 4096, PROT_WRITE, MAP_SHARED, again, 0) != MAP_FAILED)
                 bits |= 16;
               return bits;
             },
             &number, {number});
  EXPECT_EQ(outcome.status.code, 0);
}

int fill_memory(void*) {
  for (int i = 0; i < 1024; ++i) {
    void* block =
        ::mmap(nullptr, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (block == MAP_FAILED) return errno;
    static_cast<volatile char*>(block)[0] = 1;
    for (int page = 0; page < 256; ++page) static_cast<volatile char*>(block)[page * 4096] = 1;
  }
  return 0;
}

TEST(Room, AProcessCannotFillTheMemory) {
  RoomOptions options = kernel_room();
  options.memory_bytes = 128 << 20;
  const Outcome outcome = attack(options, fill_memory);
  EXPECT_TRUE(outcome.status.code == ENOMEM || outcome.status.signal == SIGKILL)
      << outcome.status.to_string();
}

TEST(Room, ManyProcessesTogetherCannotFillTheMemoryEither) {
  RoomOptions options = build_room();
  options.memory_bytes = 128 << 20;
  options.tmp_bytes = int64_t{1} << 30;
  const Outcome outcome = attack(options, [](void*) {
    const int fd = ::open("/tmp/big", O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
    const std::vector<char> much(1 << 20, 'x');
    for (int i = 0; i < 600; ++i) {
      if (::write(fd, much.data(), much.size()) < 0) return errno;
    }
    return 0;
  });
  SKIP_WITHOUT(outcome, memory);
  EXPECT_EQ(outcome.status.signal, SIGKILL) << outcome.status.to_string();
}

TEST(Room, AForkBombStopsAtTheLimit) {
  RoomOptions options = build_room();
  options.processes_max = 20;
  const Outcome outcome = attack(options, [](void*) {
    int made = 0;
    while (made < 200) {
      const pid_t pid = ::fork();
      if (pid < 0) return made;
      if (pid == 0) {
        while (true) ::pause();
      }
      ++made;
    }
    return made;
  });
  SKIP_WITHOUT(outcome, pids);
  EXPECT_EQ(outcome.status.code, 19);
}

char state_of(pid_t process) {
  const std::string text = read_file(fmt::format("/proc/{}/stat", process), 4096).value_or("");
  const size_t end = text.rfind(") ");
  return end == std::string::npos ? '-' : text[end + 2];
}

// Until all are stopped, or none is.
bool all_become(const std::vector<pid_t>& processes, bool stopped) {
  for (int i = 0; i < 2000; ++i) {
    const auto is_so = [&](pid_t process) { return (state_of(process) == 'T') == stopped; };
    if (std::ranges::all_of(processes, is_so)) return true;
    std::this_thread::sleep_for(5ms);
  }
  return false;
}

TEST(Room, IsStoppedWithThoseWhoLeftTheirGroup) {
  const Room room = Room::prepare(build_room()).value();
  CloneOptions clone;
  clone.entry = [](void*) {
    if (::fork() == 0) ::setsid();
    while (true) ::pause();
    return 0;
  };
  Child child = clone_into_room(room, clone).value();
  std::vector<pid_t> inside;
  for (int i = 0; i < 2000 && inside.size() < 2; ++i) {
    std::this_thread::sleep_for(5ms);
    inside = processes_in_room_of(child.pid());
  }
  if (child.report().protections().find("pid") == std::string::npos) GTEST_SKIP();
  ASSERT_EQ(inside.size(), 2u);
  const RoomUse use = use_of_room(child.pid());
  EXPECT_EQ(use.processes, 2);
  EXPECT_GT(use.memory_bytes, 0);
  for (const bool stopped : {true, false}) {
    signal_room(child.pid(), stopped ? SIGSTOP : SIGCONT);
    EXPECT_TRUE(all_become(inside, stopped)) << (stopped ? "one runs on" : "one stands still");
  }
}

TEST(Room, LeavesNoControlGroupBehind) {
  const CgroupPlan plan = plan_cgroups_of_this_process();
  if (plan.memory.folder.empty()) GTEST_SKIP() << plan.memory.why_missing;
  RoomOptions options = kernel_room();
  options.memory_bytes = 64 << 20;
  attack(options, [](void*) { return 0; });
  const std::string prefix = "kernelevolve-" + std::to_string(getpid()) + "-";
  const std::vector<std::string> names = list_directory(plan.memory.folder).value();
  for (const std::string& name : names) EXPECT_FALSE(name.starts_with(prefix)) << name;
}

TEST(Room, AProgramRunsInTheBuildRoom) {
  const TemporaryDirectory folder = TemporaryDirectory::create().value();
  ASSERT_TRUE(write_file_atomically(folder.path() / "a.cpp",
                                    "#include <vector>\nextern \"C\" int f() { return "
                                    "static_cast<int>(std::vector<int>(3).size()); }\n"));
  RoomOptions room_options = build_room();
  room_options.paths.push_back(
      {.host = folder.path().string(), .inside = "/work", .writable = true});
  const Room room = Room::prepare(room_options).value();
  RunOptions options;
  options.process.argv = {"g++", "-std=c++20", "-O1", "-shared", "-fPIC", "a.cpp", "-o", "a.so"};
  if (!find_program("g++")) GTEST_SKIP() << "no g++";
  options.process.environment = minimal_environment();
  options.process.working_directory = "/work";
  options.process.room = &room;
  const RunResult result = run(options).value();
  EXPECT_TRUE(result.status.success()) << result.status.to_string() << result.error;
  EXPECT_EQ(result.error, "");
  EXPECT_TRUE(os::exists(folder.path() / "a.so"));
}

TEST(Room, RefusesPathsThatAreNotThere) {
  RoomOptions options;
  options.paths = {{.host = "/no/such/path"}};
  EXPECT_EQ(Room::prepare(options).error().code, Errc::not_found);
  options.paths = {{.host = "relative"}};
  EXPECT_EQ(Room::prepare(options).error().code, Errc::invalid);
  const Room room = Room::prepare(kernel_room()).value();
  ProcessOptions process;
  process.argv = {"/bin/true"};
  process.room = &room;
  EXPECT_EQ(spawn(process).error().code, Errc::invalid);  // execve is hostile there
}

TEST(Room, AbortAndFaultsAreSeenAsSignals) {
  const Outcome fault = attack(kernel_room(), [](void*) {
    *static_cast<volatile int*>(nullptr) = 1;
    return 0;
  });
  EXPECT_EQ(fault.status.signal, SIGSEGV);
  // The first process of a pid namespace ignores signals that it sends itself, so abort() ends it
  // by its last resort, an illegal instruction.
  const Outcome abort = attack(kernel_room(), [](void*) -> int { ::abort(); });
  EXPECT_NE(abort.status.signal, 0);
}

// What moves in by it is tested where that is done: oracle/zygote_test.cpp.
TEST(Room, HasADoorOnlyWhereItLocksUp) {
  const Room room = Room::prepare(build_room()).value();
  ProcessOptions process;
  process.argv = {"/bin/sh", "-c", "read line"};
  process.environment = minimal_environment();
  process.input = Stream::pipe;
  const Child outside = spawn(process).value();
  const Result<Door> none = open_door(room, outside);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, Errc::unavailable);

  process.room = &room;
  const Child inside = spawn(process).value();
  const RoomReport& report = inside.report();
  if (!report.has(Protection::mnt) || !report.has(Protection::pid)) {
    GTEST_SKIP() << "this machine has no such namespaces";
  }
  const Result<Door> door = open_door(room, inside);
  ASSERT_TRUE(door) << door.error().to_string();
  EXPECT_EQ((door->namespaces & CLONE_NEWUSER) != 0, report.has(Protection::user));
  EXPECT_EQ((door->namespaces & CLONE_NEWNET) != 0, report.has(Protection::net));
  EXPECT_EQ(door->ruleset.valid(), report.has(Protection::landlock));
  EXPECT_EQ(door->cgroups.size(), inside.cgroups().size());
}

TEST(Cgroups, AreFoundInBothVersions) {
  const CgroupPlan none = plan_cgroups("", "");
  EXPECT_EQ(none.memory.folder, "");
  EXPECT_NE(none.memory.why_missing, "");
  const TemporaryDirectory folder = TemporaryDirectory::create().value();
  const std::string root = folder.path().string();
  ASSERT_TRUE(make_directories(folder.path() / "slice/own"));
  const CgroupPlan first = plan_cgroups("30 24 0:26 / " + root + " rw - cgroup cgroup rw,memory\n",
                                        "4:memory:/slice/own\n0::/\n");
  EXPECT_EQ(first.memory.folder, root + "/slice/own");
  EXPECT_FALSE(first.memory.unified);
  EXPECT_EQ(first.pids.folder, "");

  const std::string mounts = "30 24 0:26 / " + root + " rw shared:4 - cgroup2 cgroup2 rw\n";
  EXPECT_EQ(plan_cgroups(mounts, "0::/slice/own\n").memory.folder, "");  // not delegated
  ASSERT_TRUE(write_file_atomically(folder.path() / "slice/own/cgroup.subtree_control",
                                    "cpu memory pids\n"));
  const CgroupPlan second = plan_cgroups(mounts, "0::/slice/own\n");
  EXPECT_EQ(second.memory.folder, root + "/slice/own");
  EXPECT_TRUE(second.pids.unified);
}

}  // namespace
}  // namespace ke::os
