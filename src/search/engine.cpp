// SPDX-License-Identifier: Apache-2.0
#include "search/engine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/json.hpp"

namespace ke {
namespace {

template <class Infos>
std::string names_of(const Infos& infos) {
  std::string text;
  for (const auto* info : infos) text += fmt::format("{}{}", text.empty() ? "" : ", ", info->name);
  return text;
}

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

}  // namespace

Engine::Engine(const SearchDependencies& dependencies, const SearchOptions& options)
    : dependencies_(dependencies),
      options_(options),
      rng_(Rng(options.seed).split("search")),
      began_(dependencies.clock.now()),
      bandit_(static_cast<int>(options.proposers.size())),
      pipeline_(dependencies.evaluator) {}

Result<std::unique_ptr<Engine>> Engine::create(const SearchDependencies& dependencies,
                                               const SearchOptions& options) {
  const PolicyInfo* policy = find_policy(options.policy);
  if (!policy) {
    return Error{Errc::invalid, fmt::format("there is no policy '{}'; choose one of: {}",
                                            options.policy, names_of(all_policies()))};
  }
  if (options.proposers.empty()) {
    return Error{Errc::invalid, fmt::format("no proposer is named; choose from: {}",
                                            names_of(dependencies.proposers))};
  }
  std::vector<Arm> arms;
  for (const std::string& name : options.proposers) {
    const auto found = std::ranges::find(dependencies.proposers, name, &ProposerInfo::name);
    if (found == dependencies.proposers.end()) {
      return Error{Errc::invalid, fmt::format("there is no proposer '{}'; choose from: {}", name,
                                              names_of(dependencies.proposers))};
    }
    arms.push_back({*found, (*found)->make()});
  }
  std::unique_ptr<Engine> engine(new Engine(dependencies, options));
  engine->policy_ = policy->make();
  engine->arms_ = std::move(arms);
  return engine;
}

Result<EndReason> Engine::loop() {
  for (;;) {
    if (const std::optional<EndReason> reason = end_of(progress(), options_)) return *reason;
    // In this order, so that nothing is proposed while the judge times: a proposal takes
    // milliseconds, a judgement a hundred times as long, and builds are frozen while it times.
    TRY(fill());
    dispatch();
    if (in_flight_.empty()) return EndReason::exhausted;
    TRY(consume());
  }
}

// Has the oldest candidate judged. Reused ones need no judge.
void Engine::dispatch() {
  if (in_flight_.empty() || in_flight_.front().judging || in_flight_.front().reused) return;
  in_flight_.front().judging = true;
  pipeline_.judge(at(in_flight_.front().position).id, {.best_ns = fresh_best_ns_});
}

// Takes the oldest candidate's result: the checkpoint of the run.
Result<void> Engine::consume() {
  const InFlight front = std::move(in_flight_.front());
  in_flight_.pop_front();
  const bool reused = front.reused.has_value();
  Evaluation evaluation = reused ? front.reused->evaluation : TRY(pipeline_.wait());
  evaluation.confirmed = false;  // only the end of this run confirms
  Individual& individual = at(front.position);
  individual.judged = true;
  individual.fitness = ranking_fitness(evaluation);
  const std::vector<StatisticRow> changes = policy_->observe(population_, front.position);
  TRY(dependencies_.graph.add_evaluation(individual.id, evaluation, enum_name(Effort::screen),
                                         reused ? front.reused->id : EvaluationId{}, changes));
  account(front.position, evaluation, reused);
  emit_step(front.position, evaluation, reused);
  return {};
}

void Engine::account(int position, const Evaluation& evaluation, bool reused) {
  ++verdicts_[evaluation.verdict];
  ++(reused ? reused_judged_ : fresh_judged_);
  const std::optional<double> figure = ranking_fitness(evaluation);
  if (!reused) {
    const std::string& proposer = rows_[static_cast<size_t>(position)].proposer;
    const auto arm =
        std::ranges::find(arms_, proposer, [](const Arm& each) { return each.info->name; });
    // What the first accepted node gained is unknown: there is nothing to compare it with.
    const double before = best_fitness_.value_or(figure.value_or(1.0));
    const double gain = figure ? std::max(0.0, std::log(*figure / before)) : 0.0;
    const auto spent_ms = std::max<int64_t>(evaluation.build_ms + evaluation.judge_ms, 1);
    if (arm != arms_.end()) {
      bandit_.observe(static_cast<int>(arm - arms_.begin()), gain,
                      static_cast<double>(spent_ms) * 1e-3);
    }
    ++steps_since_gain_;
  }
  if (!figure) return;
  const int64_t time_ns = evaluation.measurement->time_ns;
  if (!reused && (!fresh_best_ns_ || time_ns < *fresh_best_ns_)) fresh_best_ns_ = time_ns;
  if (best_fitness_ && *figure <= *best_fitness_) return;
  best_fitness_ = figure;
  best_time_ns_ = time_ns;
  if (*figure >= gain_base_ * kGainMin) {
    gain_base_ = *figure;
    steps_since_gain_ = 0;
  }
}

void Engine::emit_step(int position, const Evaluation& evaluation, bool reused) const {
  const NodeRow& row = rows_[static_cast<size_t>(position)];
  dependencies_.events.emit("step.finished", {{"step", row.step},
                                              {"node", row.id.value},
                                              {"kind", enum_name(row.kind)},
                                              {"proposer", row.proposer},
                                              {"verdict", enum_name(evaluation.verdict)},
                                              {"speedup", or_null(fitness(evaluation))},
                                              {"best", or_null(best_fitness_)},
                                              {"build_ms", evaluation.build_ms},
                                              {"judge_ms", evaluation.judge_ms},
                                              {"reused", reused},
                                              {"note", row.note}});
}

Progress Engine::progress() const {
  return {.fresh_steps = fresh_judged_,
          .steps_since_gain = steps_since_gain_,
          .elapsed = dependencies_.clock.now() - began_,
          .best_fitness = best_fitness_,
          .best_time_ns = best_time_ns_,
          .floor_ns = dependencies_.evaluator.floor_ns(),
          .stop_requested = dependencies_.stop.stop_requested()};
}

SearchResult Engine::counts() const {
  return {.run = run_,
          .steps = static_cast<int64_t>(population_.individuals.size()),
          .evaluated = fresh_judged_,
          .reused = reused_judged_,
          .verdicts = verdicts_};
}

}  // namespace ke
