// SPDX-License-Identifier: Apache-2.0
//
// The experience graph in vectors: obvious code that the real stores are compared with. A query
// walks all rows.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "store/store.hpp"

namespace ke {
namespace {

class MemoryStore final : public Store {
 public:
  Result<std::vector<ProblemRow>> problems() const override { return problems_; }
  Result<std::vector<RunRow>> runs(const RunQuery& query) const override;
  Result<std::vector<NodeRow>> nodes(const NodeQuery& query) const override;
  Result<std::vector<EvaluationRow>> evaluations(const EvaluationQuery& query) const override;
  Result<std::vector<StatisticRow>> statistics(const StatisticQuery& query) const override;
  Result<std::vector<ExchangeRow>> exchanges(const ExchangeQuery& query) const override;
  Result<std::vector<JournalRow>> journal(RunId run) const override;

  Result<ProblemId> insert(const ProblemRow& row) override;
  Result<RunId> insert(const RunRow& row) override;
  Result<void> insert(const RunEndRow& row) override;
  Result<NodeId> insert(const NodeRow& row, std::span<const StatisticRow> changes) override;
  Result<EvaluationId> insert(const EvaluationRow& row,
                              std::span<const StatisticRow> changes) override;
  Result<void> insert(RunId run, std::span<const StatisticRow> changes) override;
  Result<int64_t> insert(const std::variant<PromptRow, AnswerRow>& row) override;

 private:
  struct LoggedStatistic {
    RunId run;
    StatisticRow row;
  };

  struct LoggedRow {
    RunId run;
    JournalRow row;
  };

  // Rows lie in the order of their ids.
  template <class Row, class Id>
  static const Row* find(const std::vector<Row>& rows, Id id) {
    const auto found = std::ranges::lower_bound(rows, id, {}, &Row::id);
    return found == rows.end() || found->id != id ? nullptr : &*found;
  }
  bool in_scope(RunId run, const Scope& scope) const {
    const RunRow* row = find(runs_, run);
    return row && row->scope == scope;
  }
  Result<void> check(NodeId unnamed, std::span<const StatisticRow> changes) const;
  void append(RunId run, NodeId unnamed, std::span<const StatisticRow> changes);

  std::vector<ProblemRow> problems_;
  std::vector<RunRow> runs_;
  std::vector<NodeRow> nodes_;
  std::vector<EvaluationRow> evaluations_;
  std::vector<LoggedStatistic> statistics_;
  std::vector<PromptRow> prompts_;
  std::vector<AnswerRow> answers_;
  std::vector<LoggedRow> journal_;
};

Error missing(std::string_view what, int64_t id) {
  return Error{Errc::conflict, fmt::format("the store has no {} {}", what, id)};
}

// --- Reading ------------------------------------------------------------------------------------

Result<std::vector<RunRow>> MemoryStore::runs(const RunQuery& query) const {
  std::vector<RunRow> rows;
  for (const RunRow& run : runs_) {
    if (query.id && run.id != *query.id) continue;
    if (query.problem && run.scope.problem != *query.problem) continue;
    rows.push_back(run);
  }
  return rows;
}

Result<std::vector<NodeRow>> MemoryStore::nodes(const NodeQuery& query) const {
  std::vector<NodeRow> rows;
  for (const NodeRow& node : nodes_) {
    if (query.id && node.id != *query.id) continue;
    if (query.run && node.run != *query.run) continue;
    if (query.child_of && std::ranges::find(node.parents, *query.child_of) == node.parents.end()) {
      continue;
    }
    if (query.scope && !in_scope(node.run, *query.scope)) continue;
    if (query.normalised_digest && node.normalised_digest != *query.normalised_digest) continue;
    if (node.id <= query.after) continue;
    rows.push_back(node);
    if (!query.with_source) {
      rows.back().source.clear();
      rows.back().plan.clear();
    }
    if (static_cast<int64_t>(rows.size()) == query.limit) break;
  }
  return rows;
}

Result<std::vector<EvaluationRow>> MemoryStore::evaluations(const EvaluationQuery& query) const {
  const bool best_first = query.order == EvaluationQuery::Order::best_first;
  std::vector<EvaluationRow> rows;
  for (const EvaluationRow& row : evaluations_) {
    const RunId run = find(nodes_, row.node)->run;
    if (query.node && row.node != *query.node) continue;
    if (query.run && run != *query.run) continue;
    if (query.scope && !in_scope(run, *query.scope)) continue;
    if (best_first && !row.fitness) continue;
    rows.push_back(row);
  }
  if (best_first) {
    std::ranges::stable_sort(rows, [](const EvaluationRow& a, const EvaluationRow& b) {
      return *a.fitness > *b.fitness;
    });
  }
  if (query.limit > 0 && static_cast<int64_t>(rows.size()) > query.limit) {
    rows.resize(static_cast<size_t>(query.limit));
  }
  return rows;
}

Result<std::vector<StatisticRow>> MemoryStore::statistics(const StatisticQuery& query) const {
  std::vector<StatisticRow> rows;
  for (const LoggedStatistic& logged : statistics_) {
    if (logged.run != query.run) continue;
    if (query.node && logged.row.node != *query.node) continue;
    if (query.as_of_step && logged.row.step > *query.as_of_step) continue;
    rows.push_back(logged.row);
  }
  return rows;
}

Result<std::vector<ExchangeRow>> MemoryStore::exchanges(const ExchangeQuery& query) const {
  std::vector<ExchangeRow> rows;
  for (const PromptRow& prompt : prompts_) {
    if (query.run && prompt.run != *query.run) continue;
    if (query.prompt && prompt.id != *query.prompt) continue;
    rows.push_back({prompt, {}});
    std::ranges::copy_if(answers_, std::back_inserter(rows.back().answers),
                         [&](const AnswerRow& answer) { return answer.prompt == prompt.id; });
  }
  return rows;
}

Result<std::vector<JournalRow>> MemoryStore::journal(RunId run) const {
  std::vector<JournalRow> rows;
  for (const LoggedRow& logged : journal_) {
    if (logged.run == run) rows.push_back(logged.row);
  }
  return rows;
}

// --- Inserting ----------------------------------------------------------------------------------

template <class Row>
auto next_id(const std::vector<Row>& rows, const Row& row) {
  auto id = row.id;
  const int64_t last = rows.empty() ? 0 : rows.back().id.value;
  id.value = std::max(id.value, last + 1);
  return id;
}

template <class Row>
auto append_row(std::vector<Row>& rows, const Row& row) {
  const auto id = next_id(rows, row);
  rows.push_back(row);
  rows.back().id = id;
  return id;
}

Result<ProblemId> MemoryStore::insert(const ProblemRow& row) {
  for (const ProblemRow& known : problems_) {
    if (known.name == row.name && known.digest == row.digest) return known.id;
  }
  return append_row(problems_, row);
}

Result<RunId> MemoryStore::insert(const RunRow& row) {
  if (!find(problems_, row.scope.problem)) return missing("problem", row.scope.problem.value);
  const RunId id = append_row(runs_, row);
  runs_.back().ended_utc_ms.reset();
  runs_.back().end_reason.clear();
  return id;
}

Result<void> MemoryStore::insert(const RunEndRow& row) {
  if (!find(runs_, row.run)) return missing("run", row.run.value);
  RunRow& run = *std::ranges::find(runs_, row.run, &RunRow::id);
  run.ended_utc_ms = row.ended_utc_ms;
  run.end_reason = row.reason;
  return {};
}

Result<NodeId> MemoryStore::insert(const NodeRow& row, std::span<const StatisticRow> changes) {
  if (!find(runs_, row.run)) return missing("run", row.run.value);
  for (const NodeRow& node : nodes_) {
    if (node.run == row.run && node.step == row.step) {
      return Error{Errc::conflict, fmt::format("the run already has a step {}", row.step)};
    }
  }
  for (const NodeId parent : row.parents) {
    if (!find(nodes_, parent)) return missing("node", parent.value);
  }
  if (row.prompt && !find(prompts_, row.prompt)) return missing("prompt", row.prompt.value);
  const NodeId next = next_id(nodes_, row);
  for (const StatisticRow& change : changes) {
    if (change.node != next) TRY(check(next, std::span(&change, 1)));
  }
  append_row(nodes_, row);
  journal_.push_back({row.run, {JournalKind::node, next.value}});
  append(row.run, next, changes);
  return next;
}

Result<EvaluationId> MemoryStore::insert(const EvaluationRow& row,
                                         std::span<const StatisticRow> changes) {
  const NodeRow* node = find(nodes_, row.node);
  if (!node) return missing("node", row.node.value);
  if (row.reused_from && !find(evaluations_, row.reused_from)) {
    return missing("evaluation", row.reused_from.value);
  }
  TRY(check(row.node, changes));
  const EvaluationId id = append_row(evaluations_, row);
  journal_.push_back({node->run, {JournalKind::evaluation, id.value}});
  append(node->run, row.node, changes);
  return id;
}

Result<void> MemoryStore::insert(RunId run, std::span<const StatisticRow> changes) {
  if (!find(runs_, run)) return missing("run", run.value);
  TRY(check(NodeId{}, changes));
  append(run, NodeId{}, changes);
  return {};
}

Result<int64_t> MemoryStore::insert(const std::variant<PromptRow, AnswerRow>& row) {
  if (const auto* prompt = std::get_if<PromptRow>(&row)) {
    if (!find(runs_, prompt->run)) return missing("run", prompt->run.value);
    if (prompt->follows && !find(prompts_, prompt->follows)) {
      return missing("prompt", prompt->follows.value);
    }
    const PromptId id = append_row(prompts_, *prompt);
    journal_.push_back({prompt->run, {JournalKind::prompt, id.value}});
    return id.value;
  }
  const auto& answer = std::get<AnswerRow>(row);
  const PromptRow* prompt = find(prompts_, answer.prompt);
  if (!prompt) return missing("prompt", answer.prompt.value);
  const AnswerId id = append_row(answers_, answer);
  journal_.push_back({prompt->run, {JournalKind::answer, id.value}});
  return id.value;
}

Result<void> MemoryStore::check(NodeId unnamed, std::span<const StatisticRow> changes) const {
  for (const StatisticRow& change : changes) {
    if (!change.node && unnamed) continue;
    if (!find(nodes_, change.node)) return missing("node", change.node.value);
  }
  return {};
}

void MemoryStore::append(RunId run, NodeId unnamed, std::span<const StatisticRow> changes) {
  for (StatisticRow change : changes) {
    if (!change.node) change.node = unnamed;
    statistics_.push_back({run, std::move(change)});
  }
}

}  // namespace

std::unique_ptr<Store> make_memory_store() { return std::make_unique<MemoryStore>(); }

}  // namespace ke
