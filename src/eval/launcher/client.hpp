// SPDX-License-Identifier: Apache-2.0
//
// The judge's side of a launcher: starts it in a locked room, hands it device memory and code, has
// it launch, and turns whatever happens into data. A LaunchFailure is the candidate's; an Error is
// ours. See runner/client.hpp for the same on the processor.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.hpp"
#include "base/units.hpp"
#include "domain/verdict.hpp"
#include "eval/launcher/protocol.hpp"
#include "oracle/oracle_process.hpp"
#include "os/clock.hpp"
#include "os/socket.hpp"
#include "target/launch_plan.hpp"

namespace ke::launcher {

// Device memory to bind, exported as a descriptor, and where in it the data begins.
struct DeviceTensor {
  int fd = -1;
  int64_t offset = 0;
  int64_t memory_bytes = 0;  // of the whole allocation
};

struct LaunchFailure {
  Verdict verdict = Verdict::crashed;
  std::string detail;  // one sentence
  // Set when the device reported an address that is not the kernel's to touch, or to write to:
  // bound again with inputs that may be written, the same launch tells which.
  bool illegal_address = false;
};

// By the device's own clock, in nanoseconds: of each call where caches were flushed, else of the
// whole batch.
using Outcome = std::variant<std::vector<int64_t>, LaunchFailure>;

inline const LaunchFailure* failure_of(const Outcome& outcome) {
  return std::get_if<LaunchFailure>(&outcome);
}

// A process that speaks the protocol on its socket, however it came to be.
struct Process {
  std::unique_ptr<oracle::OracleProcess> process;
  os::FileDescriptor socket;  // the judge's end
};

struct Options {
  std::vector<std::string> command;  // a program that calls child_main()
  int ordinal = 0;                   // which device
  os::Clock* clock = nullptr;
  Nanoseconds start_max = std::chrono::seconds(60);
  std::string driver = "libcuda.so.1";  // as for dlopen; shown in the room if it is a path
  // What a process with a candidate's module may take, with all others in its room.
  int64_t module_processes_max = 512;
  int64_t module_memory_bytes = int64_t{12} << 30;  // of the processor
};

// One launcher process. After a failure it is dead, and another one is started. Not thread-safe.
class Launcher {
 public:
  // Errc::unavailable, in the driver's words, where there is no device.
  static Result<std::unique_ptr<Launcher>> start(const Options& options);

  // The same with a process that is there: open() is the first command.
  static Result<std::unique_ptr<Launcher>> open(Process process, const Options& options);

  std::string protections() const { return process_.process->protections(); }

  // Inputs are mapped for reading alone unless `inputs_writable`. Binding again replaces them.
  Result<Outcome> bind(int64_t slot, std::span<const DeviceTensor> inputs,
                       std::span<const DeviceTensor> outputs, bool inputs_writable = false);
  // Replaces what was loaded before. Scratch memory is the launcher's, between unmapped space.
  Result<Outcome> load(std::string_view code, const target::LaunchPlan& plan);
  // The same for a model runner, once in its life: a Python module, and the problem as JSON.
  Result<Outcome> load_module(std::string_view source, std::string_view info, Nanoseconds timeout);
  // Copies the results that a module returned for these slots into their outputs.
  Result<Outcome> collect(std::span<const int64_t> slots, Nanoseconds timeout);
  // Fills what a module's process keeps of the device's memory for later.
  Result<Outcome> stain(std::byte value);
  // Stops and continues a process in which a candidate's own code runs.
  void set_running(bool running);
  // Launches the plan once for each slot, in order.
  Result<Outcome> run(std::span<const int64_t> slots, const RunOptions& options,
                      Nanoseconds timeout);

  bool alive() const { return alive_; }

 private:
  Launcher(Options options, Process process)
      : options_(std::move(options)), process_(std::move(process)) {}
  Result<std::optional<os::Message>> await(Nanoseconds timeout) const;
  std::string greed_of_module() const;
  Result<Outcome> command(std::string_view packet, std::span<const int> descriptors,
                          Nanoseconds timeout);
  Result<Outcome> failed(const LauncherReply& reply);
  Result<Outcome> broken(Error error);
  void end();

  Options options_;
  Process process_;
  bool alive_ = true;
  bool holds_module_ = false;
};

}  // namespace ke::launcher
