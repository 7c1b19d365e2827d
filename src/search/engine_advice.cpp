// SPDX-License-Identifier: Apache-2.0
//
// The sub-agents that models run: a conversation begins with context memory, goes on with deep
// search, and ends with the proposal. Each is asked in a prompt of its own, which follows the one
// before; what it draws on is that prompt's ground. Where a sub-agent's answer cannot be used, or
// none comes, its version without a model stands in and the conversation goes on.
#include <fmt/format.h>

#include <algorithm>

#include "base/json.hpp"
#include "propose/model/context_memory.hpp"
#include "propose/model/deep_reader.hpp"
#include "search/engine.hpp"

namespace ke {
namespace {

Agent after(Agent agent) {
  return agent == Agent::context_memory ? Agent::deep_search : Agent::proposal;
}

void note_shown(const std::vector<IndexEntry>& entries, Advice& advice) {
  for (const IndexEntry& entry : entries) advice.shown.push_back(entry.path);
}

}  // namespace

// What a conversation begins with.
Result<std::optional<ModelTask>> Engine::first_task(const ProposalContext& context,
                                                    int arm) const {
  const auto [style, model] = model_arms_[static_cast<size_t>(arm)];
  const std::optional<int64_t> room = room_[static_cast<size_t>(model)];
  if (options_.models.sub_agents == SubAgents::embedded) {
    return dependencies_.tasks->make(context, style, room);
  }
  return dependencies_.tasks->advise(context, Agent::context_memory, style, room);
}

// The next agent's prompt, or that of the one behind it where there is nothing to ask.
Result<std::optional<Engine::Asked>> Engine::next_stage(const Asked& before, const FollowUp& next) {
  const auto [style, model] = model_arms_[static_cast<size_t>(before.arm)];
  const std::optional<int64_t> room = room_[static_cast<size_t>(model)];
  ProposalContext context = TRY(context_of(before.selection));
  context.advice = &next.advice;
  if (!next.fault.empty()) {
    dependencies_.events.emit("model.stand_in", {{"prompt", next.prompt.value},
                                                 {"agent", enum_name(before.agent)},
                                                 {"message", next.fault}});
  }
  for (const Agent agent : {Agent::deep_search, Agent::proposal}) {
    if (agent < *next.stage) continue;
    Result<std::optional<ModelTask>> task =
        agent == Agent::proposal ? dependencies_.tasks->make(context, style, room)
                                 : dependencies_.tasks->advise(context, agent, style, room);
    if (!task && task.error().code != Errc::refused) return task.error();
    if (!task || !*task) continue;
    Asked asked;
    asked.selection = before.selection;
    asked.arm = before.arm;
    asked.task = std::move(**task);
    asked.agent = agent;
    asked.advice = next.advice;
    asked.row.follows = next.prompt;
    asked.row.kind = before.row.kind;
    asked.row.memory = before.row.memory;
    asked.row.parents = before.row.parents;
    asked.row.ground = dump_json(encode(asked.task->ground));
    note_shown(asked.task->ground.shown, asked.advice);
    ++uncounted_;
    return std::optional<Asked>(std::move(asked));
  }
  return std::optional<Asked>();
}

// Does the searches that deep search asked for.
Result<void> Engine::look_up(const FollowUp& next, Asked& asked) {
  std::vector<Found> found;
  for (const llm::ToolCall& search : next.searches) {
    found.push_back(TRY(dependencies_.tasks->look_up(search)));
    note_shown(found.back().entries, asked.advice);
  }
  asked.row.ground = dump_json(encode(found));
  asked.task->request =
      go_on_reading(*asked.task, next.answer, found, kSearchRoundsMax - asked.tools);
  return {};
}

// Reads what a sub-agent says and queues what follows. A fault is followed up once.
std::string Engine::read_advice(const Asked& asked, const llm::Completion& completion) {
  if (followed_.contains(asked.row.id)) return {};
  FollowUp next{.prompt = asked.row.id,
                .answer = completion.text,
                .fault = {},
                .call = {},
                .advice = asked.advice};
  next.fault = asked.agent == Agent::context_memory ? read_memory(completion, next)
                                                    : read_search(asked, completion, next);
  std::string fault = next.fault;
  if (!fault.empty() && asked.faulted) {
    stand_in(asked, fault);
    return fault;
  }
  if (fault.empty() && next.searches.empty()) next.stage = after(asked.agent);
  follow_ups_.push_back(std::move(next));
  return fault;
}

std::string Engine::read_memory(const llm::Completion& completion, FollowUp& next) {
  auto diagnosis = read_diagnosis(completion.text, completion.finish);
  if (!diagnosis) return diagnosis.error().sentence;
  next.advice.diagnosis = std::move(*diagnosis);
  return {};
}

std::string Engine::read_search(const Asked& asked, const llm::Completion& completion,
                                FollowUp& next) {
  auto choice = read_choice(completion.text, completion.finish, asked.advice.shown);
  if (!choice) return choice.error().sentence;
  if (!choice->searches.empty() && asked.tools >= kSearchRoundsMax) {
    return fmt::format("All {} rounds of searches were used; choose now.", kSearchRoundsMax);
  }
  next.advice.documents = std::move(choice->documents);
  next.searches = std::move(choice->searches);
  return {};
}

// The version without a model takes over from a sub-agent that gave nothing of use.
void Engine::stand_in(const Asked& asked, const std::string& why) {
  if (followed_.contains(asked.row.id)) return;
  follow_ups_.push_back({.prompt = asked.row.id,
                         .answer = {},
                         .fault = why,
                         .call = {},
                         .stage = after(asked.agent),
                         .advice = asked.advice});
}

// What a recorded prompt that follows another goes on with: a fault, a tool, searches, or another
// agent.
Result<void> Engine::recall_follow_up(const Asked& before, Asked& asked) {
  const bool looked = !asked.row.ground.empty();
  const bool stage = asked.agent != before.agent;
  if (looked || stage || asked.agent != Agent::proposal) ++uncounted_;
  if (!stage) {
    go_on_from(before, looked, asked);
    asked.advice = before.advice;
    if (asked.agent != Agent::deep_search || !looked) return {};
    for (const Found& found : TRY(decode_found(TRY(parse_json(asked.row.ground))))) {
      note_shown(found.entries, asked.advice);
    }
    return {};
  }
  PromptGround ground = TRY(decode_prompt_ground(TRY(parse_json(asked.row.ground))));
  asked.advice.diagnosis = std::move(ground.diagnosis);
  note_shown(ground.shown, asked.advice);
  if (asked.agent != Agent::proposal) return {};
  asked.advice.documents.emplace();
  for (const PromptDocument& document : ground.documents) {
    asked.advice.documents->push_back({document.path, document.reason});
  }
  return {};
}

}  // namespace ke
