// SPDX-License-Identifier: Apache-2.0
#include "eval/device/runner.hpp"

#include <utility>

namespace ke::device {

using launcher::Launcher;
using launcher::Outcome;

Result<Outcome> DeviceRunner::load(Candidate candidate) {
  // What a module's code did to its process would stay; a launcher of ours can be used again.
  if (holds_host_code() || std::holds_alternative<ModuleCandidate>(candidate)) forget();
  candidate_ = std::move(candidate);
  loaded_ = false;
  const std::optional<Outcome> failed = TRY(ready());
  return failed ? *failed : Outcome(std::vector<int64_t>());
}

Result<std::unique_ptr<Launcher>> DeviceRunner::start() const {
  if (!holds_host_code()) return Launcher::start(options_.launcher);
  if (!options_.start_module) {
    return Error{Errc::unavailable, "there is no process for a candidate that is a Python module"};
  }
  return Launcher::open(TRY(options_.start_module()), options_.launcher);
}

Result<Outcome> DeviceRunner::load_into(Launcher& launcher) const {
  if (const auto* package = std::get_if<PackageCandidate>(&candidate_)) {
    return launcher.load(package->code, package->plan);
  }
  const auto& module = std::get<ModuleCandidate>(candidate_);
  return launcher.load_module(module.source, module.info, options_.module_load_max);
}

// A live process that holds the candidate; else how the candidate failed.
Result<std::optional<Outcome>> DeviceRunner::ready() {
  if (launcher_ && !launcher_->alive()) launcher_.reset();
  if (!launcher_) {
    bound_.clear();
    loaded_ = false;
    running_ = true;
    launcher_ = TRY(start());
    protections_ = launcher_->protections();
  }
  set_running(true);
  if (loaded_) return std::optional<Outcome>();
  Outcome outcome = TRY(load_into(*launcher_));
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

Result<Outcome> DeviceRunner::collect(const std::vector<int>& slots, Nanoseconds timeout) {
  if (!holds_host_code()) return Outcome(std::vector<int64_t>());
  const std::vector<int64_t> numbers(slots.begin(), slots.end());
  return launcher_->collect(numbers, timeout);
}

Result<Outcome> DeviceRunner::stain(std::byte value) {
  if (!holds_host_code()) return Outcome(std::vector<int64_t>());
  if (std::optional<Outcome> failed = TRY(ready())) return std::move(*failed);
  return launcher_->stain(value);
}

Result<bool> DeviceRunner::writes_inputs(int slot, Nanoseconds timeout) {
  const auto launcher = TRY(start());
  Outcome outcome = TRY(load_into(*launcher));
  if (!failure_of(outcome)) outcome = TRY(bind(*launcher, slot, true));
  const int64_t numbers[] = {slot};
  if (!failure_of(outcome)) outcome = TRY(launcher->run(numbers, {}, timeout));
  return failure_of(outcome) == nullptr;
}

void DeviceRunner::set_running(bool running) {
  if (running == running_ || !launcher_ || !holds_host_code()) return;
  launcher_->set_running(running);
  running_ = running;
}

}  // namespace ke::device
