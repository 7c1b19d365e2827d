// SPDX-License-Identifier: Apache-2.0
//
// Where a run's prompts come from and how its answers become proposals: in use by model/task.hpp,
// in simulations by something smaller.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "propose/model/task.hpp"

namespace ke {

class ModelTasks {
 public:
  virtual ~ModelTasks() = default;
  // `tokens_max`: of the prompt, where a model is known to take no more.
  virtual Result<std::optional<ModelTask>> make(const ProposalContext& context, ModelStyle style,
                                                std::optional<int64_t> tokens_max) const = 0;
  virtual Result<ModelProposal> proposal(const ProposalContext& context, const ModelTask& task,
                                         const llm::AnswerResult& answer) const = 0;
  virtual llm::CompletionRequest follow_up(const ModelTask& task, std::string_view answer,
                                           std::string_view fault) const = 0;
  // What the tool gives, as it is recorded. On the engine's thread, like the rest.
  virtual Result<ToolUse> use(const llm::ToolCall& call) const = 0;
  virtual llm::CompletionRequest go_on(const ModelTask& task, std::string_view answer,
                                       const ToolUse& use, int left) const = 0;
  // What a sub-agent is asked before `make`; as there, nothing when there is nothing to ask.
  virtual Result<std::optional<ModelTask>> advise(const ProposalContext& context, Agent agent,
                                                  ModelStyle style,
                                                  std::optional<int64_t> tokens_max) const = 0;
  virtual Result<Found> look_up(const llm::ToolCall& search) const = 0;
};

// make_task, proposal_of, follow_up and go_on; make_memory_task and make_reader_task.
std::unique_ptr<ModelTasks> prompted_tasks(PromptOptions options);

// The proposers that ask models: `llm` and `strategist`.
std::optional<ModelStyle> style_of(std::string_view proposer);
std::string_view proposer_of(ModelStyle style);

// PromptRow::style: the proposer, and who is asked for it: "llm", "llm/context_memory".
std::string asked_style(ModelStyle style, Agent agent);
Agent agent_of(std::string_view asked_style);

}  // namespace ke
