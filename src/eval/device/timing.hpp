// SPDX-License-Identifier: Apache-2.0
//
// Times device code that was found right (DESIGN D4). Candidate and baselines take turns over the
// same slots, more of them than the device's caches hold; a sample is one batch. Where no host code
// of a candidate runs it is timed by events, from the first launch to the end of the last, else by
// the judge's clock around the whole batch, less that of an empty one. So a side that cannot launch
// as fast as the device works is measured by its launching.
// Before each pair one slot gets other contents, outputs are poisoned, and at random calls and at
// the end they are compared with the truth.
#pragma once

#include <optional>

#include "domain/evaluation.hpp"
#include "eval/baselines.hpp"
#include "eval/device/check.hpp"
#include "eval/evaluator.hpp"
#include "os/clock.hpp"

namespace ke::device {

// Whose clock a batch is timed by: the device's events, where all host code is ours, else the
// judge's, from the bell to the answer.
enum class BatchClock : uint8_t { device, judge };

// The baselines of an oracle on a device, for Baselines: sets are slots, by the oracle's numbers.
class DeviceBaselineOracle final : public Oracle {
 public:
  DeviceBaselineOracle(Oracle& oracle, BatchClock clock) : oracle_(oracle), clock_(clock) {}
  const Problem& problem() const override { return oracle_.problem(); }
  Result<InputSet> make_set(const SetRequest& request) override;
  void release(int64_t /*set_id*/) override {}
  Result<BaselineState> baseline(BaselineKind kind) override { return oracle_.baseline(kind); }
  Result<Nanoseconds> ring(BaselineKind kind, const std::vector<int64_t>& slots) override;
  void set_running(bool /*running*/) override {}

 private:
  Oracle& oracle_;
  BatchClock clock_;
};

struct DeviceTimingOptions {
  DeviceSets* sets = nullptr;
  Baselines* baselines = nullptr;
  Oracle* baseline_oracle = nullptr;  // a DeviceBaselineOracle, which `baselines` refers to as well
  DeviceBench* bench = nullptr;
  const Problem* problem = nullptr;
  BatchClock batch_clock = BatchClock::device;
  os::Clock* clock = nullptr;
  MachineProfile device;
  Precision precision = Precision::strict;
  JudgeOptions judge;
  Nanoseconds call_max{0};
};

struct DeviceTimingResult {
  std::optional<DeviceFailure> failure;
  Measurement measurement;
  bool tie = false, too_small = false, drifted = false, stopped_early = false;
};

// Fills all timing slots; their numbers, as the oracle knows them.
Result<std::vector<int64_t>> fill_timing_slots(DeviceSets& sets);

// The caller holds the timing lock; the runner holds the candidate.
Result<DeviceTimingResult> time_on_device(DeviceRunner& runner, const DeviceTimingOptions& options,
                                          Rng& rng);

}  // namespace ke::device
