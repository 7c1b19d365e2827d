// SPDX-License-Identifier: Apache-2.0
//
// How a run begins, and how it begins again from what was recorded.
#include <fmt/format.h>

#include <algorithm>

#include "base/json.hpp"
#include "llm/exchange.hpp"
#include "search/engine.hpp"

namespace ke {

Result<void> Engine::start() {
  scope_ = TRY(scope_of(dependencies_));
  run_ = TRY(dependencies_.graph.add_run({.scope = scope_,
                                          .config = dump_json(encode(options_)),
                                          .description = dump_json(encode(describe(dependencies_))),
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
  if (row.prompt) ++spending_.kernels;
}

// Observes the recorded results in their order, as the first time; what was proposed but not judged
// is in flight again. Evaluations and statistics are there already and are not recorded twice.
Result<void> Engine::restore(RunId run) {
  const RunRow row = TRY(dependencies_.graph.run(run));
  scope_ = TRY(scope_of(dependencies_));
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
  const std::vector<AnswerAgain> answers = TRY(recall_exchanges(run));
  auto answer = answers.begin();
  for (int position = 0; position < static_cast<int>(rows_.size()); ++position) {
    Individual& individual = at(position);
    const auto screen = screens.find(individual.id);
    if (screen == screens.end()) {
      const Digest& digest = rows_[static_cast<size_t>(position)].normalised_digest;
      auto earlier = TRY(dependencies_.graph.find_duplicate(scope_, digest));
      if (!earlier) {
        ++fresh_proposed_;
        if (!rows_[static_cast<size_t>(position)].prompt) ++embedded_;
        pipeline_.build(individual.id, TRY(dependencies_.graph.node(individual.id)).source);
      }
      in_flight_.push_back({position, std::move(earlier)});
      continue;
    }
    for (; answer != answers.end() && answer->row.consumed <= consumed(); ++answer) {
      charge(asked_.at(answer->row.prompt), answer->outcome, answer->usd);
    }
    const Evaluation& evaluation = screen->second.evaluation;
    const bool reused = static_cast<bool>(screen->second.reused_from);
    individual.judged = true;
    individual.fitness = ranking_fitness(evaluation);
    policy_->observe(population_, position);
    if (!reused) ++fresh_proposed_;
    if (!reused && !rows_[static_cast<size_t>(position)].prompt) ++embedded_;
    account(position, evaluation, reused);
  }
  for (const StatisticRow& statistic : TRY(dependencies_.graph.statistics(run))) {
    const auto found = positions_.find(statistic.node);
    if (statistic.name != "spent" || found == positions_.end()) continue;
    at(found->second).spent = true;
    ++spent_count_;
  }
  for (; answer != answers.end(); ++answer) {
    charge(asked_.at(answer->row.prompt), answer->outcome, answer->usd);
  }
  TRY(restore_exchanges(answers));
  // Cut off while its seeds were being entered: enter the rest.
  const bool only_seeds = std::ranges::all_of(
      rows_, [](const NodeRow& each) { return each.kind == NodeKind::seed; });
  if (only_seeds && screens.empty()) return enter_seeds();
  return {};
}

// Reads back what models were asked and what they said. Early blocks cost nothing of their own.
Result<std::vector<Engine::AnswerAgain>> Engine::recall_exchanges(RunId run) {
  std::vector<AnswerAgain> answers;
  for (const ExchangeRow& exchange : TRY(dependencies_.graph.exchanges(run))) {
    const PromptRow& prompt = exchange.prompt;
    Asked& asked = asked_.emplace(prompt.id, asked_again(prompt)).first->second;
    if (prompt.follows) {
      followed_.insert(prompt.follows);
      TRY(recall_follow_up(asked_.at(prompt.follows), asked));
    }
    for (const AnswerRow& row : exchange.answers) {
      const Json json = TRY(parse_json(row.outcome));
      llm::Outcome outcome = TRY(llm::decode_outcome(json, prompt.model));
      answers.push_back({row, std::move(outcome), json.value("usd", 0.0)});
    }
  }
  answers_count_ = static_cast<int64_t>(answers.size());
  std::ranges::sort(answers, {}, [](const AnswerAgain& one) { return one.row.id; });
  return answers;
}

Engine::Asked Engine::asked_again(const PromptRow& row) const {
  Asked asked{.row = row,
              .selection = {row.kind, {}, row.memory},
              .arm = -1,
              .task = {},
              .agent = agent_of(row.style)};
  for (const NodeId parent : row.parents) {
    const auto found = positions_.find(parent);
    if (found != positions_.end()) asked.selection.parents.push_back(found->second);
  }
  if (!dependencies_.models) return asked;
  const std::vector<ModelInfo> models = dependencies_.models->list();
  for (size_t i = 0; i < model_arms_.size(); ++i) {
    const ModelArm& arm = model_arms_[i];
    const bool same = asked_style(arm.style, asked.agent) == row.style &&
                      models[static_cast<size_t>(arm.model)].name == row.model;
    if (same) asked.arm = static_cast<int>(i);
  }
  return asked;
}

// What an answer says may not have entered the run before it was cut off; what has is known by its
// source. Prompts without an answer are asked again.
Result<void> Engine::restore_exchanges(const std::vector<AnswerAgain>& answers) {
  if (!dependencies_.models) return {};
  std::set<PromptId> answered;
  for (const AnswerAgain& again : answers) {
    Asked& asked = asked_.at(again.row.prompt);
    answered.insert(asked.row.id);
    if (again.row.early) asked.early = true;
    if (asked.arm < 0) continue;
    if (!again.outcome) {
      if (asked.agent != Agent::proposal) stand_in(asked, again.outcome.error().message);
      continue;
    }
    const auto entered = std::ranges::count(rows_, asked.row.id, &NodeRow::prompt);
    const auto good = std::ranges::count_if(answers, [&](const AnswerAgain& one) {
      return one.row.prompt == asked.row.id && one.outcome && one.row.fault.empty();
    });
    const bool may_be_new =
        again.row.fault.empty() ? entered < good : !followed_.contains(asked.row.id);
    if (may_be_new) TRY(read_answer(asked, *again.outcome, again.row.early));
  }
  for (auto& [id, asked] : asked_) {
    if (answered.contains(id) || asked.arm < 0) continue;
    auto request =
        TRY(llm::decode_request(TRY(parse_json(asked.row.request)), asked.row.stable));
    request.purpose = asked.row.style;
    unanswered_.insert(id);
    const int model = model_arms_[static_cast<size_t>(asked.arm)].model;
    dependencies_.models->ask(id, model, request, TRY(task_of(asked))->contract);
  }
  return {};
}

}  // namespace ke
