// SPDX-License-Identifier: Apache-2.0
#include "eval/device/runner.hpp"

#include <utility>

namespace ke::device {

using launcher::Launcher;
using launcher::Outcome;

Result<Outcome> DeviceRunner::load(std::string code, target::LaunchPlan plan) {
  code_ = std::move(code);
  plan_ = std::move(plan);
  loaded_ = false;
  const std::optional<Outcome> failed = TRY(ready());
  return failed ? *failed : Outcome(std::vector<int64_t>());
}

// A live launcher that holds the candidate; else how the candidate failed.
Result<std::optional<Outcome>> DeviceRunner::ready() {
  if (launcher_ && !launcher_->alive()) launcher_.reset();
  if (!launcher_) {
    bound_.clear();
    loaded_ = false;
    launcher_ = TRY(Launcher::start(options_.launcher));
    protections_ = launcher_->protections();
  }
  if (loaded_) return std::optional<Outcome>();
  Outcome outcome = TRY(launcher_->load(code_, plan_));
  if (failure_of(outcome)) return std::optional(std::move(outcome));
  loaded_ = true;
  return std::optional<Outcome>();
}

Result<Outcome> DeviceRunner::bind(Launcher& launcher, int slot, bool writable) const {
  const auto listed = [](const std::vector<DeviceTensor>& tensors) {
    std::vector<launcher::DeviceTensor> list;
    for (const DeviceTensor& tensor : tensors) {
      list.push_back({tensor.memory.get(), tensor.offset, tensor.memory_bytes});
    }
    return list;
  };
  const DeviceSlot& memory = options_.sets->at(slot).slot;
  return launcher.bind(slot, listed(memory.inputs), listed(memory.outputs), writable);
}

Result<Outcome> DeviceRunner::run(const std::vector<int>& slots,
                                  const launcher::RunOptions& options, Nanoseconds timeout) {
  if (std::optional<Outcome> failed = TRY(ready())) return std::move(*failed);
  for (const int slot : slots) {
    if (bound_.contains(slot)) continue;
    Outcome outcome = TRY(bind(*launcher_, slot, false));
    if (failure_of(outcome)) return outcome;
    bound_.insert(slot);
  }
  const std::vector<int64_t> numbers(slots.begin(), slots.end());
  return launcher_->run(numbers, options, timeout);
}

Result<bool> DeviceRunner::writes_inputs(int slot, Nanoseconds timeout) {
  const auto launcher = TRY(Launcher::start(options_.launcher));
  Outcome outcome = TRY(launcher->load(code_, plan_));
  if (!failure_of(outcome)) outcome = TRY(bind(*launcher, slot, true));
  const int64_t numbers[] = {slot};
  if (!failure_of(outcome)) outcome = TRY(launcher->run(numbers, {}, timeout));
  return failure_of(outcome) == nullptr;
}

void DeviceRunner::forget() { launcher_.reset(); }

}  // namespace ke::device
