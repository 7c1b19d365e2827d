// SPDX-License-Identifier: Apache-2.0
//
// Kernels for one problem that come from outside, from a coding agent for one. All that enters is
// a source, its parent and a note: verdicts, times and seeds are the judge's, and what is said
// about a wrong output is a position and budget units, never an expected value (DESIGN D4).
//
// Threads: one call at a time.
#pragma once

#include <optional>
#include <string>

#include "base/json_fwd.hpp"
#include "base/result.hpp"
#include "domain/evaluation.hpp"
#include "domain/limits.hpp"
#include "eval/evaluator.hpp"
#include "graph/graph.hpp"
#include "os/clock.hpp"

namespace ke::app {

// What the judge found, and where it is recorded.
struct Judged {
  NodeId node;           // with this source; 0: none
  bool known = false;    // answered from the graph, judged by nobody now
  std::string effort;    // "screen", "full", "confirm"
  Evaluation evaluation;
};

struct Submission {
  std::string source;
  NodeId parent;     // what it was made from; 0: nothing
  std::string note;  // one line: what changed; may be empty
};

// Everything by reference outlives the desk.
struct DeskOptions {
  ExperienceGraph& graph;
  Evaluator& evaluator;
  os::Clock& clock;
  Scope scope;
  std::string description;  // of the run that holds what is submitted (RunRow)
  Limits limits;
};

// Errors: Errc::invalid for a source, parent or note that is refused, with a sentence for whoever
// sent it; else a failure of the system, after which nothing of the call is recorded.
class SubmissionDesk {
 public:
  explicit SubmissionDesk(DeskOptions options) : options_(std::move(options)) {}

  // Judges without timing. Nothing is recorded.
  Result<Judged> verify(const std::string& source);
  // Fresh seeds, processes and samples. When a node holds this kernel, the node is confirmed by it.
  Result<Judged> bench(const std::string& source);
  // Screens a kernel that the graph does not hold yet, and records it as a node of this desk's run.
  Result<Judged> submit(const Submission& submission);
  Result<KernelProfile> profile(const std::string& source);

  // The best kernel of the problem under these conditions, whoever made it.
  Result<std::optional<Judged>> best() const;

  // Ends the run, if anything was submitted. What is submitted later begins another one.
  Result<void> close();

 private:
  Result<void> check_source(const std::string& source) const;
  Result<void> check(const Submission& submission) const;
  Result<Evaluation> judge(const std::string& source, const JudgeOptions& options);
  Result<NodeId> record(const Submission& submission);

  DeskOptions options_;
  RunId run_;  // 0: nothing was submitted yet
  int64_t steps_ = 0;
  std::optional<int64_t> best_ns_;  // least time screened here, to stop early what is slower
};

// What an agent is told: "verdict", "detail", "diagnostics" (without paths), "confirmed", "effort",
// times and ratios (null unless measured), "errors" against their budget, "node", and a "note" that
// says what the figures are worth. No samples.
Json encode(const Judged& judged);

}  // namespace ke::app
