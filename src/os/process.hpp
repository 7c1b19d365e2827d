// SPDX-License-Identifier: Apache-2.0
//
// Child processes. Nothing is inherited by default: the environment is what the caller lists,
// descriptors are what the caller lists, every stream is /dev/null. A child leads its own session
// and process group, dies with the thread that started it (PR_SET_PDEATHSIG), never dumps core, and
// is killed with its group when its Child object goes. Only async-signal-safe code runs between
// clone and exec, so spawning from a threaded process is safe.
//
// A process group is no prison: a program that is not trusted belongs into a Room (sandbox.hpp),
// whose end takes everything that was started in it.
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/units.hpp"
#include "os/file_descriptor.hpp"
#include "os/sandbox_report.hpp"

namespace ke::os {

class Room;

// setrlimit values; absent ones stay as they are. The core size is always 0.
struct ResourceLimits {
  std::optional<int64_t> cpu_seconds;
  std::optional<int64_t> address_space_bytes;
  std::optional<int64_t> data_bytes;  // RLIMIT_DATA: private writable memory
  std::optional<int64_t> file_size_bytes;
  std::optional<int64_t> processes;  // per user; root is exempt (use a Room's limit)
  std::optional<int64_t> open_files;
  std::optional<int32_t> processors;  // the first ones of those that the caller may run on
};

// null: /dev/null. inherit: this process's. pipe: the other end is Child::input() and so on.
enum class Stream : uint8_t { null, inherit, pipe };

struct InheritedDescriptor {
  int from = -1;  // in this process
  int to = -1;    // number in the child; 3 or more
};

struct ProcessOptions {
  std::vector<std::string> argv;         // argv[0]: absolute path, or a name found in our PATH
  std::vector<std::string> environment;  // "NAME=value"; see minimal_environment()
  std::string working_directory;         // empty: unchanged. Inside the room when there is one
  Stream input = Stream::null;
  Stream output = Stream::null;
  Stream error = Stream::null;
  std::vector<InheritedDescriptor> descriptors;
  ResourceLimits limits;
  const Room* room = nullptr;  // where to run; null: here. Must outlive the call
};

// PATH of the system's own folders, LANG=C.UTF-8, HOME and TMPDIR = home.
std::vector<std::string> minimal_environment(const std::string& home = "/tmp");

// How a process ended, as data.
struct ExitStatus {
  int code = 0;                   // when signal is 0
  int signal = 0;                 // SIGKILL…, 0 when it exited
  Nanoseconds cpu_time{0};        // user and system, of it and its reaped children
  int64_t peak_memory_bytes = 0;  // largest resident set among them

  bool success() const { return code == 0 && signal == 0; }
  std::string to_string() const;  // "exit code 3", "signal 11 (Segmentation fault)"
};

// A running or ended child. Movable; the destructor kills the whole group (or room) and reaps.
// Not thread-safe, except that signal_group may be called by another thread while this one waits.
class Child {
 public:
  Child() = default;
  Child(Child&& other) noexcept;
  Child& operator=(Child&& other) noexcept;
  ~Child();

  pid_t pid() const { return pid_; }          // in our pid namespace; also the process group's id
  int pidfd() const { return pidfd_.get(); }  // readable (poll) when the child has ended
  int input() const { return input_.get(); }  // pipe ends, -1 unless Stream::pipe
  int output() const { return output_.get(); }
  int error() const { return error_.get(); }
  FileDescriptor take_input() { return std::move(input_); }  // dropping it sends end of file
  FileDescriptor take_output() { return std::move(output_); }
  FileDescriptor take_error() { return std::move(error_); }
  // What the room enforced; empty without a room.
  const RoomReport& report() const { return report_; }
  // The room's control groups, as folders; removed when the child has ended.
  const std::vector<std::string>& cgroups() const { return cgroups_; }

  // Waits until it ends or the timeout passes (0: just look); absent: still running. Once ended,
  // returns the same status again. A stopped (SIGSTOP) child is still running.
  Result<std::optional<ExitStatus>> wait(Nanoseconds timeout);

  // Sends to the process group. False when nobody is left to receive it.
  bool signal_group(int signal) const;

  // SIGKILL to the group, and to the whole room when there is one; reaps. Always succeeds.
  ExitStatus kill();

 private:
  friend struct ChildAccess;

  pid_t pid_ = -1;
  FileDescriptor pidfd_, input_, output_, error_;
  std::optional<ExitStatus> status_;
  RoomReport report_;
  std::vector<std::string> cgroups_;
};

// Errc::not_found when the program does not exist, Errc::unavailable when no process can be made.
Result<Child> spawn(const ProcessOptions& options);

struct RunOptions {
  ProcessOptions process;         // its streams are ignored: output and error are captured
  std::string input;              // fed to stdin, then end of file
  Milliseconds time_max{60'000};  // wall time; passing it kills the group (or room)
  int64_t output_bytes_max = int64_t{1} << 20;  // of each stream; the rest is read and dropped
  int stop_fd = -1;  // when this becomes readable, the child is killed (StopSignal::fd)
  // Gets each piece of standard output as it comes, beside its being captured. False: the child is
  // killed, as by stop_fd.
  std::function<bool(std::string_view)> on_output;
  // Called with the process group's id right after the start and right before it is reaped, so that
  // somebody may freeze it (SIGSTOP) in between.
  std::function<void(pid_t)> started;
  std::function<void(pid_t)> ending;
};

struct RunResult {
  ExitStatus status;
  std::string output;
  std::string error;
  bool output_cut = false;  // something was dropped
  bool timed_out = false;
  bool stopped = false;  // by stop_fd or on_output
  Nanoseconds wall_time{0};
  RoomReport report;
};

// Runs to the end. A program that fails, crashes or passes its time is a successful run.
Result<RunResult> run(const RunOptions& options);

}  // namespace ke::os
