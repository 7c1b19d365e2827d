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
#include "search/description.hpp"
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

  // Ends what models are still writing; an answer that is complete is kept.
  Result<void> hang_up();

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

  struct ModelArm {
    ModelStyle style;
    int model;
  };
  // A prompt that was recorded, and what it takes to read its answer.
  struct Asked {
    PromptRow row;
    Selection selection;
    int arm = 0;                    // in model_arms_
    std::optional<ModelTask> task;  // made again when it is needed after a restore
    Agent agent = Agent::proposal;  // who is asked
    Advice advice = {};             // that the prompt draws on
    int tools = 0;                  // used so far for this agent's answer, searches too
    bool faulted = false;           // a fault was followed up for it
    bool early = false;             // a block of the answer has been taken already
    Nanoseconds early_after{0};     // when
  };
  // What models have said, on its way into the run.
  struct Candidate {
    PromptId prompt;
    Proposal proposal;
  };
  struct FollowUp {
    PromptId prompt;
    std::string answer;
    std::string fault;
    std::optional<llm::ToolCall> call;  // what the answer asked for instead
    std::vector<llm::ToolCall> searches = {};  // … or these, of deep search
    std::optional<Agent> stage = {};           // … or it is this one's turn, with this advice
    Advice advice = {};
  };

  Engine(const SearchDependencies& dependencies, const SearchOptions& options);

  // --- engine.cpp: the loop and what results change
  void dispatch();
  Result<void> consume();
  void account(int position, const Evaluation& evaluation, bool reused);
  void emit_step(int position, const Evaluation& evaluation, bool reused) const;
  Progress progress() const;
  bool allows(JournalKind next, bool special = false) const {
    return !dependencies_.pace || dependencies_.pace->allows(next, special);
  }
  int64_t consumed() const { return fresh_judged_ + reused_judged_; }
  size_t journal_size() const;  // grows with every row: a loop in which it does not must wait

  // --- engine_propose.cpp: where nodes come from
  Result<void> fill();
  Result<bool> propose();  // false when there is no idea now
  Result<bool> try_selection(const Selection& selection, const Rng& rng);
  Result<bool> mark_spent(int position);
  Result<ProposalContext> context_of(const Selection& selection) const;
  Result<void> enter_seeds();
  Result<void> enter(NodeRow row);
  bool draft_phase() const;

  // --- engine_ask.cpp: what models are asked
  void use_models(std::vector<ModelArm> arms);
  Result<void> ask();
  Result<bool> ask_follow_up();
  std::deque<FollowUp>::iterator next_follow_up();
  Result<std::optional<Asked>> continued(Asked& before, const FollowUp& next);
  Result<ToolUse> use_tool(const FollowUp& next) const;
  static void go_on_from(const Asked& before, bool tool, Asked& asked);
  Result<bool> ask_new();
  Result<bool> ask_about(const Selection& selection, const Rng& rng);
  Result<void> send(Asked asked);
  bool repeats(const Digest& digest) const;
  bool is_open(PromptId prompt) const;
  bool has_model(int model) const;
  bool embedded_may_go();
  void tell_away();

  // --- engine_advice.cpp: the sub-agents that models run before a proposal
  Result<std::optional<ModelTask>> first_task(const ProposalContext& context, int arm) const;
  Result<std::optional<Asked>> next_stage(const Asked& before, const FollowUp& next);
  Result<void> look_up(const FollowUp& next, Asked& asked);
  std::string read_advice(const Asked& asked, const llm::Completion& completion);
  static std::string read_memory(const llm::Completion& completion, FollowUp& next);
  static std::string read_search(const Asked& asked, const llm::Completion& completion,
                                 FollowUp& next);
  void stand_in(const Asked& asked, const std::string& why);
  Result<void> recall_follow_up(const Asked& before, Asked& asked);

  // --- engine_answers.cpp: what comes of it
  Result<void> take_answers(bool enter = true);
  Result<void> take(ModelEvent event);
  // What is wrong with the answer, or which tool it asks for; empty when a candidate came of it.
  Result<std::string> read_answer(Asked& asked, const llm::Completion& completion, bool early);
  void charge(const Asked& asked, const llm::Outcome& outcome, double usd);
  void tell_answered(const Asked& asked, const ModelEvent& event, const std::string& fault);
  void note_failure(const Asked& asked, const llm::Failure& failure);
  void end_model(int model, const std::string& message);
  Result<void> enter_candidates();

  // --- engine_restore.cpp
  struct AnswerAgain {
    AnswerRow row;
    llm::Outcome outcome;
    double usd;
  };
  Result<std::vector<AnswerAgain>> recall_exchanges(RunId run);
  Result<void> restore_exchanges(const std::vector<AnswerAgain>& answers);
  Asked asked_again(const PromptRow& row) const;
  Result<const ModelTask*> task_of(Asked& asked) const;
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
  std::vector<ModelArm> model_arms_;
  Bandit model_bandit_;
  bool counts_money_ = false;  // every model has a price

  RunId run_;
  Scope scope_;
  Population population_;
  std::vector<NodeRow> rows_;  // by position, without sources
  std::unordered_map<NodeId, int> positions_;
  std::set<Digest> known_;  // normalised sources of the run
  std::deque<InFlight> in_flight_;
  std::map<PromptId, Asked> asked_;
  std::set<PromptId> unanswered_;  // a call is in flight
  std::set<PromptId> followed_;    // has been followed up already
  size_t uncounted_ = 0;           // prompts that are no asks of their own
  std::deque<Candidate> candidates_;
  std::deque<FollowUp> follow_ups_;
  std::vector<int> failures_;  // in a row, by model
  std::vector<std::optional<int64_t>> room_;  // tokens of a prompt that a model is known to take
  std::vector<bool> ended_;    // by model: not asked again in this run
  bool told_away_ = false;
  int64_t answers_count_ = 0;
  size_t unaskable_at_ = SIZE_MAX;  // journal_size() when there was nothing to ask
  int64_t embedded_ = 0;            // fresh nodes that no model wrote
  ModelSpending spending_;
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
