// SPDX-License-Identifier: Apache-2.0
//
// One candidate for a device, wherever its process is: started when first needed, and again after a
// failure; slots are bound when they are first run. Device code is launched by a process of ours;
// a Python module runs in a process of its own.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "eval/device/sets.hpp"
#include "eval/launcher/client.hpp"

namespace ke::device {

// Device code and how it is launched.
struct PackageCandidate {
  std::string code;
  target::LaunchPlan plan;
};
// A Python module with ModelNew, and what its process must know of the problem, as JSON.
struct ModuleCandidate {
  std::string source;
  std::string info;
};
using Candidate = std::variant<PackageCandidate, ModuleCandidate>;

struct DeviceRunnerOptions {
  launcher::Options launcher;
  // A fresh process for a module; null where none can be had.
  std::function<Result<launcher::Process>()> start_module;
  Nanoseconds module_load_max = std::chrono::seconds(60);
  DeviceSets* sets = nullptr;
};

// Not thread-safe. Outlives no DeviceSets.
class DeviceRunner {
 public:
  explicit DeviceRunner(DeviceRunnerOptions options) : options_(std::move(options)) {}

  // Replaces the candidate. Errc::unavailable where there is no device.
  Result<launcher::Outcome> load(Candidate candidate);
  // Runs it on slots of the DeviceSets, in order, by their indices.
  Result<launcher::Outcome> run(const std::vector<int>& slots, const launcher::RunOptions& options,
                                Nanoseconds timeout);
  // Nothing that a module's process gave back to its allocator holds an answer from now on.
  Result<launcher::Outcome> stain(std::byte value);
  // Results of the latest run are in these slots' outputs from now on.
  Result<launcher::Outcome> collect(const std::vector<int>& slots, Nanoseconds timeout);
  // After an illegal address: runs one slot again with inputs that may be written. If that goes
  // well, it was a write to an input that was illegal.
  Result<bool> writes_inputs(int slot, Nanoseconds timeout);
  // Ends its process; the next use starts another.
  void forget() { launcher_.reset(); }

  // Whether code of the candidate's shares a process with what measures: its times are then taken
  // by the judge's clock, and it stands still while others are timed.
  bool holds_host_code() const { return std::holds_alternative<ModuleCandidate>(candidate_); }
  void set_running(bool running);

  std::string protections() const { return launcher_ ? launcher_->protections() : protections_; }

 private:
  Result<std::unique_ptr<launcher::Launcher>> start() const;
  Result<launcher::Outcome> load_into(launcher::Launcher& launcher) const;
  Result<std::optional<launcher::Outcome>> ready();
  Result<launcher::Outcome> bind(launcher::Launcher& launcher, int slot, bool writable) const;

  DeviceRunnerOptions options_;
  std::unique_ptr<launcher::Launcher> launcher_;
  std::set<int> bound_;
  bool loaded_ = false;
  bool running_ = true;
  std::string protections_;
  Candidate candidate_;
};

}  // namespace ke::device
