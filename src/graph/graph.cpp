// SPDX-License-Identifier: Apache-2.0
#include "graph/graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/json.hpp"
#include "graph/source.hpp"

namespace ke {
namespace {

// Candidates looked at for each one asked for: confirmed and reused evaluations of one node, and
// nodes with equal sources, all appear in the ranking.
constexpr int64_t kLookAhead = 32;

Result<NodeEvaluation> typed(const EvaluationRow& row) {
  const Json json = TRY(parse_json(row.evaluation));
  return NodeEvaluation{.id = row.id,
                        .node = row.node,
                        .effort = row.effort,
                        .reused_from = row.reused_from,
                        .evaluation = TRY(decode_evaluation(json))};
}

Result<std::vector<NodeEvaluation>> typed(const std::vector<EvaluationRow>& rows) {
  std::vector<NodeEvaluation> evaluations;
  evaluations.reserve(rows.size());
  for (const EvaluationRow& row : rows) {
    evaluations.push_back(TRY(typed(row).context(fmt::format("evaluation {}", row.id.value))));
  }
  return evaluations;
}

// The row that counts: the latest confirmed one, else the latest.
const EvaluationRow* deciding(const std::vector<EvaluationRow>& rows) {
  for (auto row = rows.rbegin(); row != rows.rend(); ++row) {
    if (row->confirmed) return &*row;
  }
  return rows.empty() ? nullptr : &rows.back();
}

Error not_found(std::string_view what, int64_t id) {
  return Error{Errc::not_found,
               fmt::format("there is no {} {}; `kernelevolve graph ls` lists them", what, id)};
}

Result<std::vector<RankedNode>> rank(const StoreReader& store, EvaluationQuery query,
                                     int64_t count) {
  query.order = EvaluationQuery::Order::best_first;
  query.limit = count * kLookAhead;
  std::set<NodeId> seen;
  std::set<Digest> kernels;
  std::vector<RankedNode> ranked;
  for (const EvaluationRow& row : TRY(store.evaluations(query))) {
    if (!seen.insert(row.node).second) continue;
    const std::vector<EvaluationRow> all = TRY(store.evaluations({.node = row.node}));
    const EvaluationRow* decides = deciding(all);
    if (!decides->fitness) continue;
    ranked.push_back({row.node, *decides->fitness, decides->confirmed});
  }
  std::ranges::stable_sort(ranked, std::greater{}, &RankedNode::fitness);
  std::vector<RankedNode> best;
  for (const RankedNode& one : ranked) {
    if (static_cast<int64_t>(best.size()) == count) break;
    const std::vector<NodeRow> rows = TRY(store.nodes({.id = one.node, .with_source = false}));
    if (kernels.insert(rows.front().normalised_digest).second) best.push_back(one);
  }
  return best;
}

}  // namespace

// --- Reading ------------------------------------------------------------------------------------

Result<std::vector<ProblemRow>> GraphReader::problems() const { return store_.problems(); }

Result<ProblemRow> GraphReader::problem(ProblemId id) const {
  for (ProblemRow& row : TRY(store_.problems())) {
    if (row.id == id) return std::move(row);
  }
  return not_found("problem", id.value);
}

Result<std::vector<RunRow>> GraphReader::runs() const { return store_.runs({}); }

Result<RunRow> GraphReader::run(RunId id) const {
  std::vector<RunRow> rows = TRY(store_.runs({.id = id}));
  if (rows.empty()) return not_found("run", id.value);
  return std::move(rows.front());
}

Result<std::optional<RunId>> GraphReader::latest_run() const {
  const std::vector<RunRow> rows = TRY(store_.runs({}));
  return rows.empty() ? std::optional<RunId>() : rows.back().id;
}

Result<NodeRow> GraphReader::node(NodeId id) const {
  std::vector<NodeRow> rows = TRY(store_.nodes({.id = id}));
  if (rows.empty()) return not_found("node", id.value);
  return std::move(rows.front());
}

Result<std::vector<NodeRow>> GraphReader::nodes(RunId run, bool with_source) const {
  std::vector<NodeRow> rows = TRY(store_.nodes({.run = run, .with_source = with_source}));
  std::ranges::stable_sort(rows, {}, &NodeRow::step);
  return rows;
}

Result<std::vector<NodeRow>> GraphReader::children(NodeId id) const {
  return store_.nodes({.child_of = id, .with_source = false});
}

Result<std::vector<NodeRow>> GraphReader::lineage(NodeId id) const {
  std::vector<NodeRow> found;
  std::set<NodeId> wanted = {id};
  // Parents have smaller ids than their children, so the largest wanted id is always next.
  while (!wanted.empty()) {
    const NodeId next = *wanted.rbegin();
    wanted.erase(next);
    found.push_back(TRY(node(next)));
    wanted.insert(found.back().parents.begin(), found.back().parents.end());
  }
  return found;
}

Result<std::vector<NodeEvaluation>> GraphReader::evaluations(NodeId id) const {
  return typed(TRY(store_.evaluations({.node = id})));
}

Result<std::vector<NodeEvaluation>> GraphReader::evaluations_of_run(RunId run) const {
  return typed(TRY(store_.evaluations({.run = run})));
}

Result<std::optional<NodeEvaluation>> GraphReader::verdict_of(NodeId id) const {
  const std::vector<EvaluationRow> rows = TRY(store_.evaluations({.node = id}));
  const EvaluationRow* row = deciding(rows);
  if (!row) return std::optional<NodeEvaluation>();
  return std::optional<NodeEvaluation>(TRY(typed(*row)));
}

Result<std::vector<RankedNode>> GraphReader::best_of_run(RunId run, int64_t count) const {
  return rank(store_, {.run = run}, count);
}

Result<std::vector<RankedNode>> GraphReader::best_of_scope(const Scope& scope,
                                                           int64_t count) const {
  return rank(store_, {.scope = scope}, count);
}

Result<std::optional<NodeEvaluation>> GraphReader::find_duplicate(const Scope& scope,
                                                                  const Digest& normalised) const {
  const NodeQuery query{.scope = scope, .normalised_digest = normalised, .with_source = false};
  for (const NodeRow& node : TRY(store_.nodes(query))) {
    const std::optional<NodeEvaluation> found = TRY(verdict_of(node.id));
    // A reused one leads back to its original, which is an earlier node of the same loop.
    if (found && !found->reused_from) return found;
  }
  return std::optional<NodeEvaluation>();
}

Result<std::vector<StatisticRow>> GraphReader::statistics(RunId run,
                                                          std::optional<int64_t> as_of_step) const {
  std::map<std::pair<NodeId, std::string>, StatisticRow> latest;
  for (StatisticRow& row : TRY(store_.statistics({.run = run, .as_of_step = as_of_step}))) {
    std::pair<NodeId, std::string> key{row.node, row.name};
    latest.insert_or_assign(std::move(key), std::move(row));
  }
  std::vector<StatisticRow> rows;
  for (auto& [key, row] : latest) rows.push_back(std::move(row));
  return rows;
}

Result<std::vector<ExchangeRow>> GraphReader::exchanges(RunId run) const {
  return store_.exchanges({.run = run});
}

Result<ExchangeRow> GraphReader::exchange(PromptId id) const {
  std::vector<ExchangeRow> rows = TRY(store_.exchanges({.prompt = id}));
  if (rows.empty()) return not_found("prompt", id.value);
  return std::move(rows.front());
}

Result<std::vector<JournalRow>> GraphReader::journal(RunId run) const {
  return store_.journal(run);
}

// --- Writing ------------------------------------------------------------------------------------

Result<ProblemId> ExperienceGraph::add_problem(const ProblemRow& row) {
  return writer_.insert(row);
}

Result<RunId> ExperienceGraph::add_run(const RunRow& row) { return writer_.insert(row); }

Result<void> ExperienceGraph::end_run(const RunEndRow& row) { return writer_.insert(row); }

Result<NodeId> ExperienceGraph::add_node(NodeRow row, std::span<const StatisticRow> changes) {
  row.source_digest = digest_of(row.source);
  row.normalised_digest = normalised_digest(row.source);
  return writer_.insert(row, changes);
}

Result<EvaluationId> ExperienceGraph::add_evaluation(NodeId node, const Evaluation& evaluation,
                                                     std::string_view effort,
                                                     EvaluationId reused_from,
                                                     std::span<const StatisticRow> changes) {
  const EvaluationRow row{.node = node,
                          .evaluation = dump_json(encode(evaluation)),
                          .effort = std::string(effort),
                          .confirmed = evaluation.confirmed,
                          .reused_from = reused_from,
                          .verdict = evaluation.verdict,
                          .fitness = ranking_fitness(evaluation)};
  return writer_.insert(row, changes);
}

Result<void> ExperienceGraph::add_statistics(RunId run, std::span<const StatisticRow> changes) {
  return writer_.insert(run, changes);
}

Result<PromptId> ExperienceGraph::add_prompt(const PromptRow& row) {
  return PromptId{TRY(writer_.insert(row))};
}

Result<AnswerId> ExperienceGraph::add_answer(const AnswerRow& row) {
  return AnswerId{TRY(writer_.insert(row))};
}

}  // namespace ke
