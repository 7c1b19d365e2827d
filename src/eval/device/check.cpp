// SPDX-License-Identifier: Apache-2.0
#include "eval/device/check.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/assert.hpp"
#include "eval/correctness.hpp"

namespace ke::device {
namespace {

using launcher::LaunchFailure;
using launcher::Outcome;

class DeviceCheck {
 public:
  DeviceCheck(DeviceRunner& runner, DeviceSets& sets, const Problem& problem,
              const DeviceCheckOptions& options, Rng& rng)
      : runner_(runner), sets_(sets), problem_(problem), options_(options), rng_(rng) {
    KE_ASSERT(!options_.sets.empty());
  }

  Result<DeviceCheckResult> run() {
    TRY(sets_.fill(0, sets_.checked(options_.sets.front())));  // slots are made in order
    TRY(run_once());
    // One that makes use of other bits in every call is judged many times.
    for (int i = 0; result_.nondeterministic && i < kFurtherRuns && !result_.failure; ++i) {
      TRY(run_once());
      if (result_.failure && result_.failure->verdict == Verdict::wrong_output) {
        result_.failure->verdict = Verdict::nondeterministic;
        result_.failure->detail = fmt::format(
            "calls with the same inputs differ, and further run {} of {} is wrong: {}", i + 1,
            kFurtherRuns, result_.failure->detail);
      }
    }
    return std::move(result_);
  }

 private:
  Result<void> run_once() {
    RunBudget budget(problem_, options_.precision);
    const bool first_time = result_.errors.empty();
    for (size_t i = 0; i < options_.sets.size() && !result_.failure; ++i) {
      const int slot = static_cast<int>(i % 2);
      const SetRequest content = sets_.checked(options_.sets[i]);
      TRY(call(slot, content));
      if (!result_.failure) result_.failure = TRY(compare_slot(sets_, problem_, slot, budget));
      if (i == 0 && first_time && !result_.failure) TRY(repeat(content));
    }
    if (!result_.failure) {
      if (const auto wrong = budget.verdict()) {
        result_.failure = DeviceFailure{Verdict::wrong_output, *wrong};
      }
    }
    keep_worst(result_.errors, budget.errors());
    return {};
  }

  Result<void> call(int slot, const SetRequest& content) {
    const FilledSlot* filled = TRY(sets_.fill(slot, content));
    poison_ = draw_poison(rng_, poison_);
    TRY(sets_.oracle().poison(filled->slot.id, static_cast<uint8_t>(poison_)));
    Outcome outcome = TRY(runner_.stain(poison_));
    if (!failure_of(outcome)) outcome = TRY(runner_.run({slot}, {}, options_.call_max));
    if (!failure_of(outcome)) outcome = TRY(runner_.collect({slot}, options_.call_max));
    if (const LaunchFailure* failure = failure_of(outcome)) {
      result_.failure = TRY(explain(runner_, sets_, *failure, slot, options_.call_max));
    }
    return {};
  }

  // The same contents at other addresses, over another poison: the bits must agree, unless the
  // policy has further runs decide.
  Result<void> repeat(const SetRequest& content) {
    TRY(call(1, content));
    if (result_.failure) return {};
    const auto same = TRY(sets_.oracle().same(sets_.at(0).slot.id, sets_.at(1).slot.id));
    for (size_t i = 0; i < same.size() && !result_.failure; ++i) {
      if (same[i]) continue;
      if (options_.determinism == Determinism::budget &&
          ir::is_floating(problem_.outputs[i].dtype)) {
        result_.nondeterministic = true;
        continue;
      }
      result_.failure = DeviceFailure{
          Verdict::nondeterministic,
          fmt::format("output {} differs between two calls with the same inputs", i)};
    }
    return {};
  }

  DeviceRunner& runner_;
  DeviceSets& sets_;
  const Problem& problem_;
  const DeviceCheckOptions& options_;
  Rng& rng_;
  std::byte poison_{0};
  DeviceCheckResult result_;
};

}  // namespace

Result<DeviceFailure> explain(DeviceRunner& runner, DeviceSets& sets,
                              const LaunchFailure& failure, int slot, Nanoseconds timeout) {
  if (!failure.illegal_address) return DeviceFailure{failure.verdict, failure.detail};
  const bool writes = TRY(runner.writes_inputs(slot, timeout));
  sets.spoil(slot);
  if (writes) {
    return DeviceFailure{Verdict::input_mutated,
                         "it writes to an input: with inputs that may be written it runs through, "
                         "else the device stops it"};
  }
  return DeviceFailure{Verdict::out_of_bounds, "it touched memory beyond its tensors"};
}

Result<std::optional<DeviceFailure>> compare_slot(DeviceSets& sets, const Problem& problem,
                                                  int slot, RunBudget& budgets) {
  const FilledSlot& filled = sets.at(slot);
  const SlotComparison found = TRY(sets.oracle().compare(filled.slot.id));
  const SetKind kind = filled.content.kind;
  Budget& budget = budgets.of(kind);
  for (size_t i = 0; i < problem.outputs.size(); ++i) {
    if (!found.canaries_intact[i]) {
      return std::optional(DeviceFailure{
          Verdict::out_of_bounds,
          fmt::format("it wrote beside output {}, within its last 256 bytes or before it", i)});
    }
    budget.add(i, found.outputs[i], filled.truths[i], enum_name(kind));
    if (!budget.outside_tolerance()) continue;
    std::string detail = *budget.outside_tolerance();
    if (found.poisoned[i] > 0) {
      detail += fmt::format("; {} elements were never written", found.poisoned[i]);
    }
    return std::optional(DeviceFailure{Verdict::wrong_output, std::move(detail)});
  }
  return std::optional<DeviceFailure>();
}

Result<DeviceCheckResult> check_on_device(DeviceRunner& runner, DeviceSets& sets,
                                          const Problem& problem,
                                          const DeviceCheckOptions& options, Rng& rng) {
  return DeviceCheck(runner, sets, problem, options, rng).run();
}

}  // namespace ke::device
