// SPDX-License-Identifier: Apache-2.0
//
// Decides whether device code is right: every set into poisoned outputs, one set twice, canaries,
// then the comparison with the truth, which the oracle makes on the device and the budget decides
// on. The order and the sentences are those of eval/correctness.hpp.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/rng.hpp"
#include "eval/budget.hpp"
#include "eval/device/runner.hpp"

namespace ke::device {

struct DeviceFailure {
  Verdict verdict = Verdict::crashed;
  std::string detail;
};

struct DeviceCheckOptions {
  Precision precision = Precision::strict;
  Determinism determinism = Determinism::bitwise;
  std::vector<int> sets;  // indices of kCheckedSets; the first is run twice
  Nanoseconds call_max{0};
};

struct DeviceCheckResult {
  std::optional<DeviceFailure> failure;
  std::vector<OutputError> errors;
  bool nondeterministic = false;  // under Determinism::budget: two calls differed
};

// Uses slots 0 and 1, in turn, so that contents change at one address and are seen at two.
Result<DeviceCheckResult> check_on_device(DeviceRunner& runner, DeviceSets& sets,
                                          const Problem& problem,
                                          const DeviceCheckOptions& options, Rng& rng);

// The verdict of a launcher's failure on a slot; runs it once more where that tells more.
Result<DeviceFailure> explain(DeviceRunner& runner, DeviceSets& sets,
                              const launcher::LaunchFailure& failure, int slot,
                              Nanoseconds timeout);

// A slot's outputs against its truth: what is wrong, if anything. Adds to the budget.
Result<std::optional<DeviceFailure>> compare_slot(DeviceSets& sets, const Problem& problem,
                                                  int slot, RunBudget& budget);

}  // namespace ke::device
