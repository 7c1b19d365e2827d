// SPDX-License-Identifier: Apache-2.0
//
// What language models are asked, and when. A prompt is a row before it is sent, so a run that is
// resumed neither forgets nor repeats it.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/json.hpp"
#include "llm/exchange.hpp"
#include "search/engine.hpp"

namespace ke {
namespace {

// Selections tried before giving up until something has changed.
constexpr int kAskTriesMax = 6;
// Answers that bring no kernel cost no step, but a run must end. A conversation that has begun goes
// on: it has limits of its own, and tools and sub-agents do not count.
constexpr int64_t kAsksPerStep = 4;
// The same question gets another answer from most models, but not for ever.
constexpr int kSamePromptMax = 3;

}  // namespace

void Engine::use_models(std::vector<ModelArm> arms) {
  model_bandit_ = Bandit(static_cast<int>(arms.size()));
  model_arms_ = std::move(arms);
  if (!dependencies_.models) return;
  const std::vector<ModelInfo> models = dependencies_.models->list();
  counts_money_ = std::ranges::all_of(models, &ModelInfo::priced);
  failures_.resize(models.size());
  ended_.resize(models.size());
  room_.resize(models.size());
}

// Keeps calls in flight while models can be asked and steps are left for their answers.
Result<void> Engine::ask() {
  if (model_arms_.empty()) return {};
  const auto in_flight_max = static_cast<size_t>(options_.models.calls);
  const auto asks_max = static_cast<size_t>(kAsksPerStep * options_.steps);
  while (unanswered_.size() < in_flight_max &&
         fresh_proposed_ + static_cast<int64_t>(unanswered_.size() + candidates_.size()) <
             options_.steps &&
         !dependencies_.stop.stop_requested()) {
    if (TRY(ask_follow_up())) continue;
    if (asked_.size() - uncounted_ >= asks_max) return {};
    if (!allows(JournalKind::prompt, false) || unaskable_at_ == journal_size()) return {};
    if (TRY(ask_new())) continue;
    unaskable_at_ = journal_size();
    return {};
  }
  return {};
}

bool Engine::has_model(int model) const {
  // A replay knows which model was asked; why others were not is not in the journal.
  const bool ended = ended_[static_cast<size_t>(model)] && !dependencies_.pace;
  return !ended && dependencies_.models->available(model);
}

// The conversation goes on after a fault, once, and with what a tool gave.
Result<bool> Engine::ask_follow_up() {
  while (allows(JournalKind::prompt, true)) {
    const auto found = next_follow_up();
    if (found == follow_ups_.end()) return false;
    const FollowUp next = std::move(*found);
    follow_ups_.erase(found);
    Asked& before = asked_.at(next.prompt);
    followed_.insert(next.prompt);
    if (!has_model(model_arms_[static_cast<size_t>(before.arm)].model)) continue;
    std::optional<Asked> asked = TRY(continued(before, next));
    if (!asked) continue;
    TRY(send(std::move(*asked)));
    return true;
  }
  return false;
}

// The oldest. In a replay the one that was asked: a model that was away was not asked the others.
std::deque<Engine::FollowUp>::iterator Engine::next_follow_up() {
  if (!dependencies_.pace) return follow_ups_.begin();
  return std::ranges::find(follow_ups_, dependencies_.pace->followed(), &FollowUp::prompt);
}

// Nothing when there is nothing left to be asked.
Result<std::optional<Engine::Asked>> Engine::continued(Asked& before, const FollowUp& next) {
  if (next.stage) return next_stage(before, next);
  Asked asked{.row = before.row,
              .selection = before.selection,
              .arm = before.arm,
              .task = *TRY(task_of(before)),
              .agent = before.agent,
              .advice = before.advice};
  go_on_from(before, next.call || !next.searches.empty(), asked);
  if (asked.agent != Agent::proposal) ++uncounted_;
  asked.row.id = {};
  asked.row.ground.clear();
  asked.row.follows = next.prompt;
  if (!next.searches.empty()) {
    TRY(look_up(next, asked));
    return std::optional<Asked>(std::move(asked));
  }
  const ModelTask& task = *asked.task;
  if (!next.call) {
    asked.task->request = dependencies_.tasks->follow_up(task, next.answer, next.fault);
    return std::optional<Asked>(std::move(asked));
  }
  const ToolUse use = TRY(use_tool(next));
  asked.row.ground = dump_json(encode(use));
  asked.task->request =
      dependencies_.tasks->go_on(task, next.answer, use, kToolCallsMax - asked.tools);
  ++uncounted_;
  return std::optional<Asked>(std::move(asked));
}

Result<ToolUse> Engine::use_tool(const FollowUp& next) const {
  const Nanoseconds start = dependencies_.clock.now();
  ToolUse use = TRY(dependencies_.tasks->use(*next.call));
  const auto took =
      std::chrono::duration_cast<Milliseconds>(dependencies_.clock.now() - start).count();
  dependencies_.events.emit("model.tool", {{"prompt", next.prompt.value},
                                           {"tool", enum_name(next.call->tool)},
                                           {"took_ms", took}});
  return use;
}

void Engine::go_on_from(const Asked& before, bool tool, Asked& asked) {
  asked.tools = before.tools + (tool ? 1 : 0);
  asked.faulted = before.faulted || !tool;
}

Result<bool> Engine::ask_new() {
  // Nodes that the embedded proposers have no idea for are the models' business still.
  Population population = population_;
  for (Individual& individual : population.individuals) individual.spent = false;
  const bool nothing_accepted = population.fertile().empty();
  const Rng of_ask = rng_.split(fmt::format("ask {}", asked_.size() + 1));
  for (int tries = 0; tries < kAskTriesMax; ++tries) {
    const Rng rng = of_ask.split(fmt::format("try {}", tries));
    Rng selecting = rng.split("select");
    const auto step = static_cast<int64_t>(rows_.size()) + 1;
    const Selection selection = nothing_accepted
                                    ? Selection{.kind = NodeKind::draft}
                                    : policy_->select(population, step, selecting);
    if (TRY(ask_about(selection, rng))) return true;
  }
  return false;
}

// Asks the first of the bandit's order that can be asked and has something to be asked.
Result<bool> Engine::ask_about(const Selection& selection, const Rng& rng) {
  const ProposalContext context = TRY(context_of(selection));
  Rng ranking = rng.split("bandit");
  for (const int arm : model_bandit_.ranking(ranking)) {
    if (!has_model(model_arms_[static_cast<size_t>(arm)].model)) continue;
    Result<std::optional<ModelTask>> task = first_task(context, arm);
    if (!task && task.error().code == Errc::refused) continue;  // too long for that model
    if (!task) return task.error();
    if (!*task || repeats(llm::prompt_digest((*task)->request))) continue;
    Asked asked{.row = {.kind = selection.kind,
                        .memory = selection.memory,
                        .ground = dump_json(encode((*task)->ground))},
                .selection = selection,
                .arm = arm,
                .task = std::move(**task)};
    asked.agent = asked.task->agent;
    for (const int parent : selection.parents) asked.row.parents.push_back(at(parent).id);
    TRY(send(std::move(asked)));
    return true;
  }
  return false;
}

// Whether the question is open, or was asked often enough. As long as it is not known what came of
// it, asking it again would pay twice for what the next verdict may answer.
bool Engine::repeats(const Digest& digest) const {
  int times = 0;
  for (const auto& [id, asked] : asked_) {
    if (asked.row.digest != digest) continue;
    if (is_open(id) || ++times == kSamePromptMax) return true;
  }
  return false;
}

// The conversation that the prompt begins goes on, or its kernel has no verdict yet.
bool Engine::is_open(PromptId prompt) const {
  if (unanswered_.contains(prompt)) return true;
  const auto is_it = [&](PromptId other) { return other == prompt; };
  const auto prompt_of = [&](const InFlight& node) {
    return rows_[static_cast<size_t>(node.position)].prompt;
  };
  if (std::ranges::any_of(candidates_, is_it, &Candidate::prompt) ||
      std::ranges::any_of(follow_ups_, is_it, &FollowUp::prompt) ||
      std::ranges::any_of(in_flight_, is_it, prompt_of)) {
    return true;
  }
  return std::ranges::any_of(asked_, [&](const auto& entry) {
    return entry.second.row.follows == prompt && is_open(entry.first);
  });
}

Result<void> Engine::send(Asked asked) {
  const ModelArm& arm = model_arms_[static_cast<size_t>(asked.arm)];
  llm::CompletionRequest request = asked.task->request;
  PromptRow& row = asked.row;
  row.run = run_;
  row.step = static_cast<int64_t>(rows_.size());
  row.consumed = consumed();
  row.style = asked_style(arm.style, asked.agent);
  request.purpose = row.style;
  row.model = dependencies_.models->list()[static_cast<size_t>(arm.model)].name;
  row.digest = llm::prompt_digest(request);
  row.stable = request.stable;
  row.stable_digest = digest_of(request.stable);
  row.request = dump_json(llm::encode_request(request));
  const PromptId id = TRY(dependencies_.graph.add_prompt(row));
  row.id = id;
  row.stable.clear();
  dependencies_.events.emit("model.asked", {{"prompt", id.value},
                                            {"model", row.model},
                                            {"style", row.style},
                                            {"kind", enum_name(row.kind)}});
  const llm::AnswerContract contract = asked.task->contract;
  asked_.insert_or_assign(id, std::move(asked));
  unanswered_.insert(id);
  told_away_ = false;
  dependencies_.models->ask(id, arm.model, request, contract);
  return {};
}

// Says once that no model can be asked: until one is asked again.
void Engine::tell_away() {
  for (int model = 0; model < static_cast<int>(ended_.size()); ++model) {
    if (has_model(model)) return;
  }
  if (std::exchange(told_away_, true)) return;
  dependencies_.events.emit(
      "models.away", {{"message", "no model can be asked now; the embedded proposers go on"}});
}

// While models answer, a share of the steps is theirs: the embedded proposers are so much faster
// that they would use up the run before the first answer.
bool Engine::embedded_may_go() {
  if (!allows(JournalKind::node, false)) return false;
  if (model_arms_.empty() || dependencies_.pace) return true;
  if (unanswered_.empty()) {
    tell_away();
    return true;
  }
  const auto kept =
      static_cast<int64_t>(options_.models.share * static_cast<double>(options_.steps));
  const auto expected = static_cast<int64_t>(unanswered_.size() + candidates_.size());
  return embedded_ < options_.steps - kept && fresh_proposed_ + expected < options_.steps;
}

}  // namespace ke
