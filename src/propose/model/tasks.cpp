// SPDX-License-Identifier: Apache-2.0
#include "propose/model/tasks.hpp"

#include <algorithm>

#include "base/assert.hpp"
#include "propose/model/context_memory.hpp"
#include "propose/model/deep_reader.hpp"

namespace ke {
namespace {

class PromptedTasks final : public ModelTasks {
 public:
  explicit PromptedTasks(PromptOptions options) : options_(options) {}

  Result<std::optional<ModelTask>> make(const ProposalContext& context, ModelStyle style,
                                        std::optional<int64_t> tokens_max) const override {
    return make_task(context, style, within(tokens_max));
  }
  Result<ModelProposal> proposal(const ProposalContext& context, const ModelTask& task,
                                 const llm::AnswerResult& answer) const override {
    return proposal_of(context, task, answer);
  }
  llm::CompletionRequest follow_up(const ModelTask& task, std::string_view answer,
                                   std::string_view fault) const override {
    return ke::follow_up(task, answer, fault);
  }
  Result<ToolUse> use(const llm::ToolCall& call) const override {
    KE_ASSERT(options_.ground != nullptr);  // or no contract would allow for tools
    ToolUse use;
    use.call = call;
    use.result = tool_text(TRY(options_.ground->use(call)));
    return use;
  }
  llm::CompletionRequest go_on(const ModelTask& task, std::string_view answer, const ToolUse& use,
                               int left) const override {
    return ke::go_on(task, answer, use, left);
  }
  Result<std::optional<ModelTask>> advise(const ProposalContext& context, Agent agent,
                                          ModelStyle style,
                                          std::optional<int64_t> tokens_max) const override {
    return agent == Agent::context_memory ? make_memory_task(context, style, within(tokens_max))
                                          : make_reader_task(context, style, within(tokens_max));
  }
  Result<Found> look_up(const llm::ToolCall& search) const override {
    KE_ASSERT(options_.ground != nullptr);  // or deep search would not be asked
    return options_.ground->look_up(search);
  }

 private:
  PromptOptions within(std::optional<int64_t> tokens_max) const {
    PromptOptions options = options_;
    options.tokens_max = std::min(options.tokens_max, tokens_max.value_or(options.tokens_max));
    return options;
  }

  PromptOptions options_;
};

}  // namespace

std::unique_ptr<ModelTasks> prompted_tasks(PromptOptions options) {
  return std::make_unique<PromptedTasks>(options);
}

}  // namespace ke
