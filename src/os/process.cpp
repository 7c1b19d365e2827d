// SPDX-License-Identifier: Apache-2.0
#include "os/process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "base/assert.hpp"
#include "os/file_system.hpp"
#include "os/sandbox.hpp"
#include "os/socket.hpp"
#include "os/start_child.hpp"

namespace ke::os {

namespace {

Nanoseconds nanoseconds_of(const timeval& time) {
  return std::chrono::seconds(time.tv_sec) + std::chrono::microseconds(time.tv_usec);
}

ExitStatus status_from(int status, const rusage& usage) {
  ExitStatus result;
  if (WIFSIGNALED(status)) {
    result.signal = WTERMSIG(status);
  } else {
    result.code = WEXITSTATUS(status);
  }
  result.cpu_time = nanoseconds_of(usage.ru_utime) + nanoseconds_of(usage.ru_stime);
  result.peak_memory_bytes = int64_t{usage.ru_maxrss} * 1024;
  return result;
}

struct Pipe {
  FileDescriptor read, write;
};

Result<Pipe> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return system_error(errno, "make a pipe");
  return Pipe{FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

}  // namespace

std::vector<std::string> minimal_environment(const std::string& home) {
  return {"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8",
          "HOME=" + home, "TMPDIR=" + home};
}

std::string ExitStatus::to_string() const {
  if (signal == 0) return "exit code " + std::to_string(code);
  return "signal " + std::to_string(signal) + " (" + ::strsignal(signal) + ")";
}

// --- Child
// ------------------------------------------------------------------------------------------

Child ChildAccess::make(pid_t pid, FileDescriptor pidfd, std::vector<std::string> cgroups) {
  Child child;
  child.pid_ = pid;
  child.pidfd_ = std::move(pidfd);
  child.cgroups_ = std::move(cgroups);
  return child;
}

void ChildAccess::set_report(Child& child, RoomReport report) { child.report_ = std::move(report); }

void ChildAccess::set_pipes(Child& child, FileDescriptor input, FileDescriptor output,
                            FileDescriptor error) {
  child.input_ = std::move(input);
  child.output_ = std::move(output);
  child.error_ = std::move(error);
}

Child::Child(Child&& other) noexcept { *this = std::move(other); }

Child& Child::operator=(Child&& other) noexcept {
  if (this == &other) return *this;
  kill();
  pid_ = std::exchange(other.pid_, -1);
  pidfd_ = std::move(other.pidfd_);
  input_ = std::move(other.input_);
  output_ = std::move(other.output_);
  error_ = std::move(other.error_);
  status_ = std::exchange(other.status_, std::nullopt);
  report_ = std::move(other.report_);
  cgroups_ = std::exchange(other.cgroups_, {});
  return *this;
}

Child::~Child() { kill(); }

Result<std::optional<ExitStatus>> Child::wait(Nanoseconds timeout) {
  KE_ASSERT(pid_ > 0);
  if (status_) return status_;
  // A pidfd is readable once the process is a zombie, which still holds its id and its group's.
  if (!TRY(wait_readable(pidfd_.get(), timeout))) return std::optional<ExitStatus>();
  ::kill(-pid_, SIGKILL);  // whoever is left of the group
  int status = 0;
  rusage usage{};
  while (::wait4(pid_, &status, 0, &usage) < 0) {
    if (errno != EINTR) return system_error(errno, "wait for a child process");
  }
  status_ = status_from(status, usage);
  for (const std::string& folder : cgroups_) ::rmdir(folder.c_str());
  cgroups_.clear();
  return status_;
}

bool Child::signal_group(int signal) const {
  return pid_ > 0 && !status_ && ::kill(-pid_, signal) == 0;
}

ExitStatus Child::kill() {
  if (pid_ <= 0) return {};
  if (status_) return *status_;
  ::kill(-pid_, SIGKILL);
  ::kill(pid_, SIGKILL);  // not in the group yet, when it has just been cloned
  const Result<std::optional<ExitStatus>> ended = wait(std::chrono::hours(24));
  if (!ended || !*ended) return ExitStatus{.signal = SIGKILL};
  return **ended;
}

// --- spawn
// ------------------------------------------------------------------------------------------

namespace {

// The child's end of one stream, and ours when it is a pipe.
Result<void> set_up_stream(Stream kind, int number, Pipe& pipe, StartOptions& start) {
  if (kind == Stream::inherit) start.standard[number] = number;
  if (kind != Stream::pipe) return {};
  pipe = TRY(make_pipe());
  start.standard[number] = number == 0 ? pipe.read.get() : pipe.write.get();
  return {};
}

}  // namespace

Result<Child> spawn(const ProcessOptions& options) {
  KE_ASSERT(!options.argv.empty());
  StartOptions start;
  start.path = TRY(find_program(options.argv.front())).string();
  if (options.room != nullptr && !options.room->can_exec()) {
    return Error{Errc::invalid, "a room for kernels alone cannot start " + start.path};
  }
  start.argv = options.argv;
  start.environment = options.environment;
  start.working_directory = options.working_directory;
  start.descriptors = options.descriptors;
  start.limits = options.limits;
  start.room = options.room;
  Pipe pipes[3];
  TRY(set_up_stream(options.input, 0, pipes[0], start));
  TRY(set_up_stream(options.output, 1, pipes[1], start));
  TRY(set_up_stream(options.error, 2, pipes[2], start));
  Child child = TRY(start_child(start));
  ChildAccess::set_pipes(child, std::move(pipes[0].write), std::move(pipes[1].read),
                         std::move(pipes[2].read));
  return child;
}

}  // namespace ke::os
