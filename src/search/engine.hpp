// SPDX-License-Identifier: Apache-2.0
//
// The engine of one run: proposes, records, consumes results in the order of proposals, and asks
// the end rules. Every decision of step n is a function of the options, the results consumed before
// it and a generator split by the step's number, so a run that is resumed goes on as it would have.
#pragma once

#include <deque>
#include <memory>
#include <set>
#include <unordered_map>

#include "propose/bandit.hpp"
#include "search/pipeline.hpp"
#include "search/policy.hpp"
#include "search/search.hpp"
#include "search/termination.hpp"

namespace ke {

class Engine {
 public:
  // Errc::invalid when the options name an unknown policy or proposer.
  static Result<std::unique_ptr<Engine>> create(const SearchDependencies& dependencies,
                                                const SearchOptions& options);

  Result<void> start();             // a new run, with its seeds
  Result<void> restore(RunId run);  // a run that was recorded
  // Until an end rule applies or nothing is left to propose. A running judgement is finished first.
  Result<EndReason> loop();

  RunId run() const { return run_; }
  SearchResult counts() const;  // everything but best, evaluation and reason

 private:
  struct Arm {
    const ProposerInfo* info;
    std::unique_ptr<Proposer> proposer;
  };
  struct InFlight {
    int position;                          // in the population
    std::optional<NodeEvaluation> reused;  // judged in an earlier run
    bool judging = false;
  };

  Engine(const SearchDependencies& dependencies, const SearchOptions& options);

  // --- engine.cpp: the loop and what results change
  void dispatch();
  Result<void> consume();
  void account(int position, const Evaluation& evaluation, bool reused);
  void emit_step(int position, const Evaluation& evaluation, bool reused) const;
  Progress progress() const;

  // --- engine_propose.cpp: where nodes come from
  Result<void> fill();
  Result<bool> propose();  // false when there is no idea now
  Result<bool> try_selection(const Selection& selection, const Rng& rng);
  Result<bool> mark_spent(int position);
  Result<ProposalContext> context_of(const Selection& selection) const;
  Result<void> enter_seeds();
  Result<void> enter(NodeRow row);
  bool draft_phase() const;

  // --- engine_restore.cpp
  Result<Scope> scope() const;
  void adopt(const NodeRow& row);

  Individual& at(int position) { return population_.individuals[static_cast<size_t>(position)]; }
  const Individual& at(int position) const {
    return population_.individuals[static_cast<size_t>(position)];
  }

  const SearchDependencies& dependencies_;
  const SearchOptions options_;
  const Rng rng_;
  const Nanoseconds began_;
  std::unique_ptr<Policy> policy_;
  std::vector<Arm> arms_;
  Bandit bandit_;

  RunId run_;
  Scope scope_;
  Population population_;
  std::vector<NodeRow> rows_;  // by position, without sources
  std::unordered_map<NodeId, int> positions_;
  std::set<Digest> known_;  // normalised sources of the run
  std::deque<InFlight> in_flight_;
  int64_t spent_count_ = 0;
  int64_t fresh_proposed_ = 0;
  int64_t fresh_judged_ = 0;
  int64_t reused_judged_ = 0;
  int64_t steps_since_gain_ = 0;
  double gain_base_ = 0;  // fitness at the last gain that counted
  std::optional<double> best_fitness_;
  std::optional<int64_t> best_time_ns_;   // of the node with the best fitness
  std::optional<int64_t> fresh_best_ns_;  // least time judged here, for stopping early
  std::map<Verdict, int64_t> verdicts_;
  Pipeline pipeline_;  // last: its workers end before anything they feed
};

}  // namespace ke
