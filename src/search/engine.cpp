// SPDX-License-Identifier: Apache-2.0
#include "search/engine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/json.hpp"

namespace ke {
namespace {

// How long a wait for models lasts at most, before the end rules are asked again.
constexpr Milliseconds kModelWait{100};

template <class Infos>
std::string names_of(const Infos& infos) {
  std::string text;
  for (const auto* info : infos) text += fmt::format("{}{}", text.empty() ? "" : ", ", info->name);
  return text;
}

}  // namespace

Engine::Engine(const SearchDependencies& dependencies, const SearchOptions& options)
    : dependencies_(dependencies),
      options_(options),
      rng_(Rng(options.seed).split("search")),
      began_(dependencies.clock.now()),
      bandit_(0),
      model_bandit_(0),
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
  std::vector<ModelArm> model_arms;
  for (const std::string& name : options.proposers) {
    if (const std::optional<ModelStyle> style = style_of(name)) {
      if (!dependencies.models || !dependencies.tasks) {
        return Error{Errc::invalid,
                     fmt::format("the proposer '{}' needs a language model; name one", name)};
      }
      const auto count = static_cast<int>(dependencies.models->list().size());
      for (int model = 0; model < count; ++model) model_arms.push_back({*style, model});
      continue;
    }
    const auto found = std::ranges::find(dependencies.proposers, name, &ProposerInfo::name);
    if (found == dependencies.proposers.end()) {
      return Error{Errc::invalid, fmt::format("there is no proposer '{}'; choose from: {}", name,
                                              names_of(dependencies.proposers))};
    }
    arms.push_back({*found, (*found)->make()});
  }
  std::unique_ptr<Engine> engine(new Engine(dependencies, options));
  engine->policy_ = policy->make();
  engine->bandit_ = Bandit(static_cast<int>(arms.size()));
  engine->arms_ = std::move(arms);
  engine->use_models(std::move(model_arms));
  return engine;
}

Result<EndReason> Engine::loop() {
  for (;;) {
    if (const std::optional<EndReason> reason = end_of(progress(), options_)) return *reason;
    // In this order, so that nothing is proposed while the judge times: a proposal takes
    // milliseconds, a judgement a hundred times as long, and builds are frozen while it times.
    const size_t before = journal_size();
    TRY(take_answers());
    TRY(ask());
    TRY(fill());
    dispatch();
    if (in_flight_.empty() && unanswered_.empty()) return EndReason::exhausted;
    if (!in_flight_.empty() && allows(JournalKind::evaluation)) {
      TRY(consume());
    } else if (dependencies_.models && journal_size() == before) {
      TRY(dependencies_.models->wait(kModelWait));
    }
  }
}

size_t Engine::journal_size() const {
  return rows_.size() + asked_.size() +
         static_cast<size_t>(consumed() + answers_count_ + spent_count_);
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
  const NodeRow& row = rows_[static_cast<size_t>(position)];
  if (row.prompt && evaluation.verdict == Verdict::accepted) ++spending_.accepted;
  if (!reused) {
    const std::string& proposer = row.proposer;
    const auto arm =
        std::ranges::find(arms_, proposer, [](const Arm& each) { return each.info->name; });
    // What the first accepted node gained is unknown: there is nothing to compare it with.
    const double before = best_fitness_.value_or(figure.value_or(1.0));
    const double gain = figure ? std::max(0.0, std::log(*figure / before)) : 0.0;
    const auto spent_ms = std::max<int64_t>(evaluation.build_ms + evaluation.judge_ms, 1);
    const double seconds = static_cast<double>(spent_ms) * 1e-3;
    if (arm != arms_.end()) {
      bandit_.observe(static_cast<int>(arm - arms_.begin()), gain, seconds);
    }
    const auto asked = asked_.find(row.prompt);
    if (asked != asked_.end() && asked->second.arm >= 0) {
      model_bandit_.observe(asked->second.arm, gain, seconds);
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
          .verdicts = verdicts_,
          .models = spending_};
}

}  // namespace ke
