// SPDX-License-Identifier: Apache-2.0
//
// The judge's side of runners: starts the host, has runners cloned, hands them memory files and a
// library, rings for batches and turns whatever happens into data. A RunnerFailure is the
// candidate's; an Error is ours.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/result.hpp"
#include "domain/limits.hpp"
#include "domain/problem.hpp"
#include "domain/verdict.hpp"
#include "eval/runner/protocol.hpp"
#include "os/clock.hpp"
#include "os/perf_counters.hpp"
#include "os/process.hpp"

namespace ke::runner {

// One tensor to bind: a memory file and where in it the data begins.
struct TensorFile {
  int fd = -1;  // read-only for inputs
  int64_t offset = 0;
  int64_t file_bytes = 0;
};

struct RunnerFailure {
  Verdict verdict = Verdict::crashed;
  std::string detail;  // one sentence, without the program's own words except a loader's message
};

// A finished command's wall time by the judge's clock, or the candidate's failure.
using Outcome = std::variant<Nanoseconds, RunnerFailure>;

inline const RunnerFailure* failure_of(const Outcome& outcome) {
  return std::get_if<RunnerFailure>(&outcome);
}

class Host;

// One runner process. Movable; ends with the object. Not thread-safe. After a failure it is dead.
class Runner {
 public:
  Runner(Runner&&) noexcept;
  Runner& operator=(Runner&&) noexcept;
  ~Runner();

  const std::string& protections() const { return protections_; }

  // Binds inputs and outputs of one slot. Binding a slot again keeps its addresses.
  Result<Outcome> bind(int slot, std::span<const TensorFile> inputs,
                       std::span<const TensorFile> outputs);
  // -1 loads the empty kernel.
  Result<Outcome> load(int library_fd, const Problem& problem, Nanoseconds timeout);
  // Calls the kernel once for each slot, in order.
  Result<Outcome> run(std::span<const int64_t> slots, Nanoseconds timeout);

  // Names of the files whose code it has mapped, without folders: the libraries it has loaded.
  // Code in memory files, such as the kernel itself, is left out.
  std::set<std::string> code_files() const;

  // To be opened before load(): threads that it has already are not counted.
  os::PerfCounters counters() const { return os::PerfCounters::open(static_cast<pid_t>(pid_)); }

  // Stops every thread and returns when none runs any more; resume() continues them.
  Result<void> stop();
  Result<void> resume();

  // Kills and reaps it, now.
  void end();
  bool alive() const { return pid_ > 0; }

 private:
  friend class Host;
  Runner(Host* host, int64_t pid, os::FileDescriptor pidfd, os::FileDescriptor socket,
         std::string protections);
  Result<Outcome> command(std::string_view packet, std::span<const int> descriptors,
                          Nanoseconds timeout);
  Result<Outcome> failed(const RunnerReply& reply);
  Result<Outcome> ended_by_itself();
  Result<void> signal(int number);

  Host* host_;
  int64_t pid_;
  os::FileDescriptor pidfd_, socket_;
  std::string protections_;
  bool stopped_ = false;
};

struct HostOptions {
  std::vector<std::string> command;  // a program that calls runner_host_main(kHostSocket)
  Limits limits;
  int32_t threads = 1;
  os::Clock* clock = nullptr;
  // Shared libraries that kernels find, as absolute paths; absent: all that the machine has.
  std::optional<std::vector<std::string>> libraries;
};

// Must outlive its runners. Not thread-safe.
class Host {
 public:
  static Result<std::unique_ptr<Host>> start(const HostOptions& options);
  Result<Runner> spawn();

 private:
  friend class Runner;
  Host(HostOptions options, os::Child process, os::FileDescriptor socket);
  Result<HostReply> ask(std::string_view packet, std::span<const int> descriptors,
                        os::FileDescriptor* received);
  Result<HostReply> reap(int64_t pid);

  HostOptions options_;
  os::Child process_;
  os::FileDescriptor socket_;
};

}  // namespace ke::runner
