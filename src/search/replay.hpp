// SPDX-License-Identifier: Apache-2.0
//
// Plays a recorded run again: evaluations and answers come from the recording, while selection,
// prompts and the reading of answers are computed anew. The same engine runs, over a store that
// compares every row with the recorded one, so the first difference ends the replay.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <vector>

#include "base/events.hpp"
#include "base/result.hpp"
#include "graph/recording.hpp"
#include "search/description.hpp"
#include "search/search.hpp"

namespace ke {

struct ReplayDependencies {
  const Target& target;
  const RunDescription& about;  // decode_run_description of the recording
  std::vector<ir::Program> programs;  // one a shape case, or none
  // Makes the tasks over what the recording holds.
  std::function<std::unique_ptr<ModelTasks>(GroundSource& ground)> tasks;
  std::span<const ProposerInfo* const> proposers = all_proposers();
  EventSink& events;
};

struct ReplayReport {
  int64_t nodes = 0;
  int64_t evaluations = 0;
  int64_t prompts = 0;
  int64_t answers = 0;
};

// Errc::conflict, with a sentence that says what differs and where, for the first difference;
// invalid for a recording that cannot be replayed (it builds on other runs).
Result<ReplayReport> replay(const Recording& recording, const ReplayDependencies& dependencies);

// A kernel whose verdict is another one now.
struct OtherVerdict {
  NodeId node;
  Verdict recorded = Verdict::accepted;
  Verdict now = Verdict::accepted;
  std::string detail;
};

// Judges every recorded kernel again; times are not compared. Emits step.finished for each.
Result<std::vector<OtherVerdict>> judge_again(const Recording& recording, Evaluator& evaluator,
                                              EventSink& events, std::stop_token stop);

}  // namespace ke
