// SPDX-License-Identifier: Apache-2.0
//
// Times a candidate that was found right against the baselines (DESIGN D4). The judge's clock runs
// around one ring for a batch of calls that rotates through distinct inputs and outputs; candidate
// and baseline batches alternate over the same sets; whoever does not run is stopped. Before each
// pair every rotated input is changed in place, so an answer kept from an earlier call is wrong.
// At random calls, and afterwards, outputs are checked: against the truth where there is one, and
// bit for bit against what a fresh runner makes of the same inputs; under Determinism::budget, by
// how far two calls may be apart (agreement.hpp).
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "domain/evaluation.hpp"
#include "eval/baselines.hpp"
#include "eval/correctness.hpp"
#include "eval/evaluator.hpp"

namespace ke {

// Wall time of a batch of empty calls: median and spread (between the quartiles).
struct EmptyBatch {
  int64_t median_ns = 0;
  int64_t spread_ns = 0;
};

struct TimingPlan {
  int32_t calls = 1;  // in a batch
  int pairs = 3;
  bool warm_calls = true;  // one unmeasured call after each switch
};

// How many samples of what size, from estimates of one call of either side.
// `batch_ns`: how long a batch should take; 0: what the processor's noise asks for.
TimingPlan plan_timing(Effort effort, int64_t candidate_ns, int64_t baseline_ns, int set_count,
                       bool cold, int64_t batch_ns = 0);

struct TimingOptions {
  Oracle* oracle = nullptr;
  os::Clock* clock = nullptr;
  runner::Host* host = nullptr;
  SetStore* sets = nullptr;
  Baselines* baselines = nullptr;
  std::map<int32_t, EmptyBatch>* empty_batches = nullptr;  // by calls; filled as needed
  MachineProfile machine;
  Precision precision = Precision::strict;
  Determinism determinism = Determinism::bitwise;
  std::vector<Closeness> closeness;  // one an output, from checking
  JudgeOptions judge;
  Nanoseconds call_max{0};
  Nanoseconds first_estimate{0};  // of one call, from checking
  int kernel_fd = -1;             // the built kernel, for the fresh runner
};

struct TimingResult {
  std::optional<runner::RunnerFailure> failure;
  Measurement measurement;
  bool tie = false, too_small = false, drifted = false, stopped_early = false;
  bool nondeterministic = false;  // a timed call's bits were not a fresh process's, as allowed
};

// The caller holds the timing lock. The runner holds the loaded candidate.
Result<TimingResult> time_candidate(runner::Runner& runner, const TimingOptions& options, Rng& rng,
                                    ThreadPool* pool);

}  // namespace ke
