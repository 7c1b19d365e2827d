// SPDX-License-Identifier: Apache-2.0
//
// One candidate of device code, wherever its launcher is: started when first needed, and again
// after a failure; slots are bound when they are first run.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "eval/device/sets.hpp"
#include "eval/launcher/client.hpp"

namespace ke::device {

struct DeviceRunnerOptions {
  launcher::Options launcher;
  DeviceSets* sets = nullptr;
};

// Not thread-safe. Outlives no DeviceSets.
class DeviceRunner {
 public:
  explicit DeviceRunner(DeviceRunnerOptions options) : options_(std::move(options)) {}

  // Replaces the candidate. Errc::unavailable where there is no device.
  Result<launcher::Outcome> load(std::string code, target::LaunchPlan plan);
  // Runs it on slots of the DeviceSets, in order, by their indices.
  Result<launcher::Outcome> run(const std::vector<int>& slots, const launcher::RunOptions& options,
                                Nanoseconds timeout);
  // After an illegal address: runs one slot again with inputs that may be written. If that goes
  // well, it was a write to an input that was illegal.
  Result<bool> writes_inputs(int slot, Nanoseconds timeout);
  // Bindings are forgotten: the slots are others now.
  void forget();

  std::string protections() const { return launcher_ ? launcher_->protections() : protections_; }

 private:
  Result<std::optional<launcher::Outcome>> ready();
  Result<launcher::Outcome> bind(launcher::Launcher& launcher, int slot, bool writable) const;

  DeviceRunnerOptions options_;
  std::unique_ptr<launcher::Launcher> launcher_;
  std::set<int> bound_;
  bool loaded_ = false;
  std::string code_, protections_;
  target::LaunchPlan plan_;
};

}  // namespace ke::device
