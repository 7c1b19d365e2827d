// SPDX-License-Identifier: Apache-2.0
//
// What comes of the models' answers: a row first, then candidates, a follow-up, or a lesson about
// the model.
#include <fmt/format.h>

#include <algorithm>

#include "base/json.hpp"
#include "graph/source.hpp"
#include "llm/exchange.hpp"
#include "search/engine.hpp"

namespace ke {
namespace {

// Failures in a row after which a model is not asked again in this run. A dead endpoint is left
// alone for ever longer (llm/breaker.hpp), so this takes minutes.
constexpr int kFailuresMax = 6;
// The exchange rate of the bandit when every model has a price: a cent is as dear as so long.
constexpr double kSecondsPerUsd = 1000;
constexpr double kSecondsMin = 1e-3;
constexpr int64_t kRoomMin = 1'000;  // tokens; a prompt below that is of no use

int64_t milliseconds(Nanoseconds duration) {
  return std::chrono::duration_cast<Milliseconds>(duration).count();
}

}  // namespace

Result<void> Engine::take_answers(bool enter) {
  if (!dependencies_.models) return {};
  dependencies_.models->drain(dependencies_.events);
  while (std::optional<ModelEvent> event = dependencies_.models->poll()) {
    TRY(take(std::move(*event)));
  }
  if (enter) TRY(enter_candidates());
  return {};
}

Result<void> Engine::hang_up() {
  if (!dependencies_.models) return {};
  for (const PromptId id : unanswered_) {
    if (!asked_.at(id).early) continue;
    dependencies_.events.emit("model.cut", {{"prompt", id.value}});
  }
  dependencies_.models->end();
  return take_answers(false);
}

Result<void> Engine::take(ModelEvent event) {
  Asked& asked = asked_.at(event.prompt);
  const size_t candidates_before = candidates_.size();
  const std::string fault =
      event.outcome ? TRY(read_answer(asked, *event.outcome, event.early)) : std::string();
  if (event.early && candidates_.size() == candidates_before) return {};  // wait for the whole
  Json outcome = llm::encode_outcome(event.outcome);
  outcome["usd"] = event.usd;
  TRY(dependencies_.graph.add_answer({.prompt = event.prompt,
                                      .consumed = consumed(),
                                      .early = event.early,
                                      .outcome = dump_json(outcome),
                                      .fault = fault}));
  ++answers_count_;
  if (event.early) {
    asked.early = true;
    asked.early_after = event.outcome->elapsed;
    dependencies_.events.emit("model.early",
                              {{"prompt", event.prompt.value},
                               {"after_ms", milliseconds(event.outcome->elapsed)}});
    return {};
  }
  unanswered_.erase(event.prompt);
  charge(asked, event.outcome, event.usd);
  if (event.outcome) {
    failures_[static_cast<size_t>(model_arms_[static_cast<size_t>(asked.arm)].model)] = 0;
    tell_answered(asked, event, fault);
  } else {
    note_failure(asked, event.outcome.error());
    if (asked.agent != Agent::proposal) stand_in(asked, event.outcome.error().message);
  }
  return {};
}

// Reads a kernel out of an answer and queues it, or the tool that it asks for. A fault is followed
// up within the conversation, unless one has been already, or a block of the answer was good.
Result<std::string> Engine::read_answer(Asked& asked, const llm::Completion& completion,
                                        bool early) {
  if (asked.agent != Agent::proposal) return early ? "" : read_advice(asked, completion);
  const ModelTask& task = *TRY(task_of(asked));
  llm::AnswerResult answer = llm::Answer{};
  if (early) {
    std::optional<llm::Answer> block = llm::AnswerStream(task.contract).feed({completion.text});
    if (!block) return std::string("no block was complete");
    answer = std::move(*block);
  } else {
    answer = llm::parse_answer(completion.text, completion.finish, task.contract);
  }
  const ProposalContext context = TRY(context_of(asked.selection));
  ModelProposal read = TRY(dependencies_.tasks->proposal(context, task, answer));
  if (read.proposal) {
    candidates_.push_back({asked.row.id, std::move(*read.proposal)});
    return std::string();
  }
  if (read.call && asked.tools < kToolCallsMax) {
    read.fault = fmt::format("asked for {}", enum_name(read.call->tool));
    if (!followed_.contains(asked.row.id)) {
      follow_ups_.push_back({asked.row.id, completion.text, read.fault, std::move(read.call)});
    }
    return read.fault;
  }
  if (read.call) {
    read.fault = fmt::format("All {} tools were used; write the kernel now.", kToolCallsMax);
  }
  if (!early && !asked.early && !asked.faulted && !followed_.contains(asked.row.id)) {
    follow_ups_.push_back({asked.row.id, completion.text, read.fault, {}});
  }
  return read.fault;
}

// What the answer cost is the arm's to earn back, whether or not a kernel came of it.
void Engine::charge(const Asked& asked, const llm::Outcome& outcome, double usd) {
  const bool early = outcome && outcome->finish == llm::FinishReason::stopped_by_us;
  // What the budget forbade was never sent.
  const bool unsent = !outcome && outcome.error().kind == llm::FailureKind::budget;
  if (early || unsent) return;
  const llm::Usage& usage = outcome ? outcome->usage : outcome.error().usage;
  ++spending_.calls;
  spending_.tokens += usage.input_tokens + usage.output_tokens;
  spending_.usd += usd;
  if (asked.agent != Agent::proposal) {
    ++spending_.sub_agents.calls;
    spending_.sub_agents.tokens += usage.input_tokens + usage.output_tokens;
    spending_.sub_agents.usd += usd;
  }
  if (asked.arm < 0) return;
  const double waited = outcome ? Seconds(outcome->elapsed).count() : 0.0;
  const double cost = counts_money_ ? usd * kSecondsPerUsd : waited;
  model_bandit_.observe(asked.arm, 0, std::max(cost, kSecondsMin));
  if (outcome || outcome.error().kind != llm::FailureKind::context_overflow) return;
  // The next prompt for this model is made to fit: into what it says it takes, else into half.
  const auto model = static_cast<size_t>(model_arms_[static_cast<size_t>(asked.arm)].model);
  const int64_t told = outcome.error().context_tokens_max.value_or(0);
  const int64_t tried = llm::estimate_tokens(asked.row.request);
  const int64_t fits = told > 0 ? std::min(told / 2, tried) : tried / 2;
  room_[model] = std::max(kRoomMin, std::min(room_[model].value_or(fits), fits));
}

void Engine::tell_answered(const Asked& asked, const ModelEvent& event, const std::string& fault) {
  const llm::Usage& usage = event.outcome->usage;
  // By judging its block while the rest was written.
  const Nanoseconds saved =
      asked.early ? event.outcome->elapsed - asked.early_after : Nanoseconds{0};
  dependencies_.events.emit("model.answered",
                            {{"prompt", asked.row.id.value},
                             {"model", asked.row.model},
                             {"after_ms", milliseconds(event.outcome->elapsed)},
                             {"saved_ms", milliseconds(saved)},
                             {"tokens", usage.input_tokens + usage.output_tokens},
                             {"usd", event.usd},
                             {"fault", fault}});
}

void Engine::note_failure(const Asked& asked, const llm::Failure& failure) {
  const int model = model_arms_[static_cast<size_t>(asked.arm)].model;
  dependencies_.events.emit("model.failed", {{"prompt", asked.row.id.value},
                                             {"model", asked.row.model},
                                             {"kind", enum_name(failure.kind)},
                                             {"message", failure.message}});
  const bool hopeless = failure.kind == llm::FailureKind::budget ||
                        failure.kind == llm::FailureKind::refused ||
                        failure.kind == llm::FailureKind::diverged;
  if (hopeless || ++failures_[static_cast<size_t>(model)] >= kFailuresMax) {
    end_model(model, failure.message);
  }
}

void Engine::end_model(int model, const std::string& message) {
  if (ended_[static_cast<size_t>(model)]) return;
  ended_[static_cast<size_t>(model)] = true;
  const std::string name = dependencies_.models->list()[static_cast<size_t>(model)].name;
  dependencies_.events.emit("model.ended", {{"model", name}, {"message", message}});
}

Result<void> Engine::enter_candidates() {
  while (!candidates_.empty()) {
    const bool known = known_.contains(normalised_digest(candidates_.front().proposal.source));
    const bool may_enter = fresh_proposed_ < options_.steps &&
                           !dependencies_.stop.stop_requested() &&
                           allows(JournalKind::node, true);
    if (!known && !may_enter) return {};
    Candidate next = std::move(candidates_.front());
    candidates_.pop_front();
    if (known) continue;
    const PromptRow& prompt = asked_.at(next.prompt).row;
    TRY(enter({.kind = prompt.kind,
               .memory = prompt.memory,
               .parents = std::move(next.proposal.parents),
               .proposer = prompt.style,
               .source = std::move(next.proposal.source),
               .plan = std::move(next.proposal.plan),
               .note = std::move(next.proposal.note),
               .prompt = next.prompt}));
  }
  return {};
}

// Made when it was asked, or again after a restore; what was sent then stays what was sent.
Result<const ModelTask*> Engine::task_of(Asked& asked) const {
  if (asked.task) return &*asked.task;
  const ModelStyle style = model_arms_[static_cast<size_t>(asked.arm)].style;
  ProposalContext context = TRY(context_of(asked.selection));
  context.advice = &asked.advice;
  if (asked.agent == Agent::proposal) {
    asked.task = TRY(dependencies_.tasks->make(context, style, std::nullopt));
  } else {  // all there is to read its answer is the advice
    asked.task = ModelTask{.style = style, .agent = asked.agent};
    asked.task->contract.sources = false;
  }
  if (!asked.task) {
    return Error{Errc::internal,
                 fmt::format("prompt {} cannot be made again", asked.row.id.value)};
  }
  const ExchangeRow stored = TRY(dependencies_.graph.exchange(asked.row.id));
  asked.task->request = TRY(llm::decode_request(TRY(parse_json(stored.prompt.request)),
                                                stored.prompt.stable));
  return &*asked.task;
}

}  // namespace ke
