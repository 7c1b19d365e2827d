// SPDX-License-Identifier: Apache-2.0
//
// The experience graph: every candidate with its lineage and what the judge found, as typed values
// over a store. Reading it needs no right to write it.
//
// Threads: one call at a time, as the store.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/json_fwd.hpp"
#include "base/result.hpp"
#include "domain/evaluation.hpp"
#include "domain/experience.hpp"
#include "store/store.hpp"

namespace ke {

// One evaluation of a node with where it came from.
struct NodeEvaluation {
  EvaluationId id;
  NodeId node;
  std::string effort;
  EvaluationId reused_from;
  Evaluation evaluation;
};

struct RankedNode {
  NodeId node;
  double fitness = 0;  // of its latest accepted evaluation
  bool confirmed = false;
};

class GraphReader {
 public:
  explicit GraphReader(const StoreReader& store) : store_(store) {}

  Result<std::vector<ProblemRow>> problems() const;
  Result<ProblemRow> problem(ProblemId id) const;  // Errc::not_found
  Result<std::vector<RunRow>> runs() const;        // oldest first
  Result<RunRow> run(RunId id) const;              // Errc::not_found
  Result<std::optional<RunId>> latest_run() const;

  Result<NodeRow> node(NodeId id) const;                                  // Errc::not_found
  Result<std::vector<NodeRow>> nodes(RunId run, bool with_source) const;  // in order of steps
  Result<std::vector<NodeRow>> children(NodeId id) const;                 // without sources
  // The node and its ancestors, each once, newest first.
  Result<std::vector<NodeRow>> lineage(NodeId id) const;

  Result<std::vector<NodeEvaluation>> evaluations(NodeId id) const;  // oldest first
  Result<std::vector<NodeEvaluation>> evaluations_of_run(RunId run) const;
  // The confirmed one if there is one, else the latest.
  Result<std::optional<NodeEvaluation>> verdict_of(NodeId id) const;

  // Accepted nodes by fitness, best first; equal sources once. A node whose confirmation failed is
  // not among them.
  Result<std::vector<RankedNode>> best_of_run(RunId run, int64_t count) const;
  Result<std::vector<RankedNode>> best_of_scope(const Scope& scope, int64_t count) const;

  // The first node with this normalised source that was judged in the scope, with its evaluation.
  Result<std::optional<NodeEvaluation>> find_duplicate(const Scope& scope,
                                                       const Digest& normalised) const;

  Result<std::vector<ExchangeRow>> exchanges(RunId run) const;   // in the order of asking
  Result<ExchangeRow> exchange(PromptId id) const;                // Errc::not_found
  Result<std::vector<JournalRow>> journal(RunId run) const;

  // Statistics of a run as they were at the end of a step (all when absent), one row each.
  Result<std::vector<StatisticRow>> statistics(RunId run,
                                               std::optional<int64_t> as_of_step = {}) const;

 protected:
  const StoreReader& store_;
};

class ExperienceGraph final : public GraphReader {
 public:
  explicit ExperienceGraph(Store& store) : GraphReader(store), writer_(store) {}

  Result<ProblemId> add_problem(const ProblemRow& row);
  Result<RunId> add_run(const RunRow& row);
  Result<void> end_run(const RunEndRow& row);
  // Fills both digests from the source.
  Result<NodeId> add_node(NodeRow row, std::span<const StatisticRow> changes = {});
  Result<EvaluationId> add_evaluation(NodeId node, const Evaluation& evaluation,
                                      std::string_view effort, EvaluationId reused_from = {},
                                      std::span<const StatisticRow> changes = {});
  Result<void> add_statistics(RunId run, std::span<const StatisticRow> changes);
  Result<PromptId> add_prompt(const PromptRow& row);
  Result<AnswerId> add_answer(const AnswerRow& row);

 private:
  Store& writer_;
};

// --- Views for people and programs --------------------------------------------------------------

// {"schema","run","problem","nodes":[{…,"evaluations":[…]}],"statistics":[…],"texts":{digest:…},
// "prompts":[{…,"answers":[…]}],"journal":[["node",id],…],"description"}: for `graph export`. It
// holds what `replay` needs (graph/recording.hpp reads it back).
Result<Json> export_run(const GraphReader& graph, RunId run);
// The same as one JSON line a row, so that memory stays flat: the first line is the run.
Result<void> export_run_lines(const GraphReader& graph, RunId run,
                              const std::function<void(std::string_view line)>& write);

// Text of `graph ls`, `graph show NODE`, `graph lineage NODE`; each ends with a newline.
Result<std::string> list_text(const GraphReader& graph);
Result<std::string> show_text(const GraphReader& graph, NodeId node);
Result<std::string> lineage_text(const GraphReader& graph, NodeId node);

}  // namespace ke
