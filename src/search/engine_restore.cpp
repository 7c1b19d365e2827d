// SPDX-License-Identifier: Apache-2.0
//
// How a run begins, and how it begins again from what was recorded.
#include <fmt/format.h>

#include <algorithm>

#include "base/json.hpp"
#include "search/engine.hpp"

namespace ke {

Result<Scope> Engine::scope() const {
  const Problem& problem = dependencies_.problem;
  const ProblemId id = TRY(dependencies_.graph.add_problem(
      {.name = problem.name, .path = problem.path, .digest = problem.digest}));
  std::string toolchain = TRY(dependencies_.target.toolchain());
  if (!dependencies_.conditions.empty()) toolchain += "; " + dependencies_.conditions;
  return Scope{id, dependencies_.target_name, std::move(toolchain)};
}

Result<void> Engine::start() {
  scope_ = TRY(scope());
  run_ = TRY(dependencies_.graph.add_run({.scope = scope_,
                                          .config = dump_json(encode(options_)),
                                          .seed = options_.seed,
                                          .started_utc_ms = dependencies_.clock.utc_ms()}));
  return enter_seeds();
}

// Makes the row known to everything that decides; says nothing about its judgement.
void Engine::adopt(const NodeRow& row) {
  const auto position = static_cast<int>(rows_.size());
  Individual individual{.id = row.id, .step = row.step, .kind = row.kind};
  for (const NodeId parent : row.parents) {
    const auto found = positions_.find(parent);  // parents of other runs do not count
    if (found != positions_.end()) individual.parents.push_back(found->second);
  }
  population_.individuals.push_back(std::move(individual));
  positions_.emplace(row.id, position);
  known_.insert(row.normalised_digest);
  rows_.push_back(row);
  rows_.back().source.clear();
  rows_.back().plan.clear();
}

// Observes the recorded results in their order, as the first time; what was proposed but not judged
// is in flight again. Evaluations and statistics are there already and are not recorded twice.
Result<void> Engine::restore(RunId run) {
  const RunRow row = TRY(dependencies_.graph.run(run));
  scope_ = TRY(scope());
  if (row.scope != scope_) {
    return Error{
        Errc::conflict,
        fmt::format("run {} was made for another version of the problem, another target or "
                    "another toolchain ({} {}); start a new one",
                    run.value, row.scope.target, row.scope.toolchain)};
  }
  run_ = run;
  std::unordered_map<NodeId, NodeEvaluation> screens;
  for (NodeEvaluation& one : TRY(dependencies_.graph.evaluations_of_run(run))) {
    if (!one.evaluation.confirmed) screens.try_emplace(one.node, std::move(one));
  }
  for (const NodeRow& node : TRY(dependencies_.graph.nodes(run, false))) adopt(node);
  for (int position = 0; position < static_cast<int>(rows_.size()); ++position) {
    Individual& individual = at(position);
    const auto screen = screens.find(individual.id);
    if (screen == screens.end()) {
      const Digest& digest = rows_[static_cast<size_t>(position)].normalised_digest;
      auto earlier = TRY(dependencies_.graph.find_duplicate(scope_, digest));
      if (!earlier) {
        ++fresh_proposed_;
        pipeline_.build(individual.id, TRY(dependencies_.graph.node(individual.id)).source);
      }
      in_flight_.push_back({position, std::move(earlier)});
      continue;
    }
    const Evaluation& evaluation = screen->second.evaluation;
    const bool reused = static_cast<bool>(screen->second.reused_from);
    individual.judged = true;
    individual.fitness = ranking_fitness(evaluation);
    policy_->observe(population_, position);
    if (!reused) ++fresh_proposed_;
    account(position, evaluation, reused);
  }
  for (const StatisticRow& statistic : TRY(dependencies_.graph.statistics(run))) {
    const auto found = positions_.find(statistic.node);
    if (statistic.name != "spent" || found == positions_.end()) continue;
    at(found->second).spent = true;
    ++spent_count_;
  }
  // Cut off while its seeds were being entered: enter the rest.
  const bool only_seeds = std::ranges::all_of(
      rows_, [](const NodeRow& each) { return each.kind == NodeKind::seed; });
  if (only_seeds && screens.empty()) return enter_seeds();
  return {};
}

}  // namespace ke
