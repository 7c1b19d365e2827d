// SPDX-License-Identifier: Apache-2.0
//
// The slots on a device that one judge uses: which input set lies in which, and what the oracle
// says of its truth. A set is made again from its seed whenever it is filled in; the oracle keeps
// those that it has room for.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/rng.hpp"
#include "domain/limits.hpp"
#include "domain/machine.hpp"
#include "eval/sets.hpp"
#include "oracle/device_slots.hpp"

namespace ke::device {

// What lies in a slot.
struct FilledSlot {
  DeviceSlot slot;
  SetRequest content;
  std::vector<OutputTruth> truths;  // one an output, without values
  bool filled = false;
};

// How many slots timing rotates through: more than the device's caches hold, two at least.
int timing_slots(const Problem& problem, const MachineProfile& device, const Limits& limits);

// Not thread-safe. Slots are numbered from 0; references stay valid as long as this does.
class DeviceSets {
 public:
  // `memory_bytes`: of the device.
  DeviceSets(Oracle& oracle, const MachineProfile& device, int64_t memory_bytes,
             const Limits& limits, uint64_t seed);
  ~DeviceSets();

  // Draws new seeds: nothing that was seen before is filled in again.
  void renew();

  // What kCheckedSets[index] is this time.
  SetRequest checked(int index) const;
  // One of timing_count() nominal contents; the first two are the checked ones.
  SetRequest nominal(int index) const;

  // Called before each content that is made: a moment in which nothing of ours runs.
  void set_pause(std::function<Result<void>()> pause) { pause_ = std::move(pause); }

  // A nominal content that was never filled in, without a truth.
  SetRequest unseen();

  // Slot `index` with this content, made when first asked for.
  Result<const FilledSlot*> fill(int index, const SetRequest& request);
  // Its inputs may have been written to.
  void spoil(int index) { slots_[static_cast<size_t>(index)]->filled = false; }
  // A slot as it is; it was filled before.
  const FilledSlot& at(int index) const { return *slots_[static_cast<size_t>(index)]; }
  int made() const { return static_cast<int>(slots_.size()); }

  // Whether the truth of a checked set is likely to stay on the device between evaluations; others
  // are made again each time.
  bool resident(int checked) const { return checked < resident_count_; }
  // How many slots timing rotates through, and whether that is more than the device's caches hold.
  int timing_count() const { return timing_count_; }
  bool cold() const;

  DeviceSlots& oracle() { return slots_of_oracle_; }

 private:
  Oracle& oracle_;
  DeviceSlots& slots_of_oracle_;
  int64_t cache_bytes_;
  int timing_count_ = 2;
  int resident_count_ = kCheckedSetCount;
  Rng seeds_;
  std::vector<uint64_t> checked_seeds_, nominal_seeds_;
  std::vector<std::unique_ptr<FilledSlot>> slots_;
  std::function<Result<void>()> pause_;
};

}  // namespace ke::device
