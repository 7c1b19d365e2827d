// SPDX-License-Identifier: Apache-2.0
#include "eval/device/sets.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/assert.hpp"

namespace ke::device {
namespace {

// Memory that timing rotates through, as a multiple of the device's last-level cache.
constexpr double kRotationOfDeviceCache = 2.5;

// Of the device's memory, for truths: what py/kernelevolve/device_slots.py keeps of contents.
constexpr double kTruthShare = 0.4;
constexpr int kResidentMin = 3;  // two nominal sets and a probe are always checked

}  // namespace

int timing_slots(const Problem& problem, const MachineProfile& device, const Limits& limits) {
  const double call_bytes =
      static_cast<double>(std::max<int64_t>(1, problem.input_bytes() + problem.output_bytes()));
  const double wanted =
      kRotationOfDeviceCache * static_cast<double>(device.llc_bytes) / call_bytes;
  return std::clamp(static_cast<int>(std::min(wanted, 1e6)) + 1, 2,
                    std::max<int>(2, limits.timing_sets_max));
}

DeviceSets::DeviceSets(Oracle& oracle, const MachineProfile& device, int64_t memory_bytes,
                       const Limits& limits, uint64_t seed)
    : oracle_(oracle),
      slots_of_oracle_(*oracle.device_slots()),
      cache_bytes_(device.llc_bytes),
      seeds_(Rng(seed).split("device sets")) {
  const Problem& problem = oracle.problem();
  timing_count_ = timing_slots(problem, device, limits);
  const double kept = kTruthShare * static_cast<double>(memory_bytes);
  const auto truth = static_cast<double>(std::max<int64_t>(1, truth_bytes(problem)));
  resident_count_ = std::clamp(static_cast<int>(std::min(kept / truth, 1e6)), kResidentMin,
                               kCheckedSetCount);
  renew();
}

DeviceSets::~DeviceSets() {
  for (const auto& slot : slots_) slots_of_oracle_.drop_slot(slot->slot.id);
}

void DeviceSets::renew() {
  checked_seeds_.clear();
  nominal_seeds_.clear();
  for (int i = 0; i < kCheckedSetCount; ++i) checked_seeds_.push_back(seeds_.next());
  for (int i = 0; i < timing_count_; ++i) nominal_seeds_.push_back(seeds_.next());
  std::copy_n(checked_seeds_.begin(), 2, nominal_seeds_.begin());  // both are nominal
}

SetRequest DeviceSets::checked(int index) const {
  return {kCheckedSets[index], checked_seeds_[static_cast<size_t>(index)], true};
}

SetRequest DeviceSets::nominal(int index) const {
  return {SetKind::nominal, nominal_seeds_[static_cast<size_t>(index)], true};
}

SetRequest DeviceSets::unseen() { return {SetKind::nominal, seeds_.next(), false}; }

bool DeviceSets::cold() const {
  const Problem& problem = oracle_.problem();
  return timing_count_ * (problem.input_bytes() + problem.output_bytes()) > 2 * cache_bytes_;
}

Result<const FilledSlot*> DeviceSets::fill(int index, const SetRequest& request) {
  KE_ASSERT(index >= 0 && index <= made());
  if (pause_) TRY(pause_());
  if (index == made()) {
    auto made = std::make_unique<FilledSlot>();
    made->slot = TRY(slots_of_oracle_.make_slot());
    slots_.push_back(std::move(made));
  }
  FilledSlot& slot = *slots_[static_cast<size_t>(index)];
  const bool same = slot.filled && slot.content.kind == request.kind &&
                    slot.content.seed == request.seed;
  if (same) return const_cast<const FilledSlot*>(&slot);
  slot.filled = false;
  slot.truths = TRY(slots_of_oracle_.fill(slot.slot.id, request)
                        .context(fmt::format("cannot make the input set '{}'",
                                             enum_name(request.kind))));
  slot.content = request;
  slot.filled = true;
  return const_cast<const FilledSlot*>(&slot);
}

}  // namespace ke::device
