// SPDX-License-Identifier: Apache-2.0
//
// Decides whether a loaded candidate is right: every set into poisoned outputs, one set twice,
// canaries, then the comparison with the truth while the candidate is stopped. Where the policy
// allows other bits in every call, a candidate that makes use of it runs many times.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/rng.hpp"
#include "eval/agreement.hpp"
#include "eval/budget.hpp"
#include "eval/runner/client.hpp"
#include "eval/sets.hpp"

namespace ke {

struct CheckOptions {
  Precision precision = Precision::strict;
  Determinism determinism = Determinism::bitwise;
  std::vector<int> sets;    // indices of kCheckedSets; the first is run twice
  Nanoseconds call_max{0};  // wall time of one call
  bool tell_values = false;  // say what was expected and got: for a person, never for a proposer
};

struct CheckResult {
  std::optional<runner::RunnerFailure> failure;
  std::vector<OutputError> errors;
  // Under Determinism::budget: the bits of two calls differed, and what is asked of others.
  bool nondeterministic = false;
  std::vector<Closeness> closeness;  // one an output, by the first set
  Nanoseconds last_call{0};
};

// Uses slots 0 and 1 of the runner: sets alternate between them, so contents change at one address
// and the same contents are seen at two. The runner is left stopped, or dead after a failure.
Result<CheckResult> check_correctness(runner::Runner& runner, SetStore& sets,
                                      const Problem& problem, const CheckOptions& options, Rng& rng,
                                      ThreadPool* pool);

// Under Determinism::budget, how often a candidate whose calls differ goes through all input sets
// again, each time judged as the first time. One that goes wrong in every fifth run is missed once
// in 35 times, and the search that screened it and the confirmation draw anew: once in 1,200.
inline constexpr int kFurtherRuns = 16;

// These runs, of a runner that check_correctness() left alive. A run that is wrong makes the
// candidate nondeterministic; the errors become those of the worst run.
Result<void> check_further_runs(runner::Runner& runner, SetStore& sets, const Problem& problem,
                                const CheckOptions& options, Rng& rng, ThreadPool* pool,
                                CheckResult& checked);

// Slots 0 and 1 are for checking; timing slots follow.
inline constexpr int kFirstTimingSlot = 2;

// Repeated in every width, these are large finite floats, large integers and no boolean.
std::byte draw_poison(Rng& rng, std::byte other_than);

// Whether the canaries of all outputs are as they were made; else a failure.
std::optional<runner::RunnerFailure> check_canaries(const OutputSet& outputs);

}  // namespace ke
