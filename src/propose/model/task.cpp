// SPDX-License-Identifier: Apache-2.0
#include "propose/model/task.hpp"

#include <fmt/format.h>

namespace ke {
namespace {

constexpr std::string_view kStable =
    "Write the fastest kernel. Answer with one fenced block that holds a whole C++ source: it "
    "includes \"kernelevolve/kernel.h\" and defines ke_launch as declared there.\n";

}  // namespace

Result<std::optional<ModelTask>> make_task(const ProposalContext& context, ModelStyle style,
                                           const PromptOptions&) {
  if (style == ModelStyle::plan) return std::optional<ModelTask>();
  ModelTask task{.style = style, .kind = context.kind, .memory = context.memory};
  task.request.stable = kStable;
  std::string text = fmt::format("Problem {}.\n", context.problem.name);
  if (context.problem.graph) text += ir::print(*context.problem.graph);
  for (const ParentView& parent : context.parents) {
    text += fmt::format("\nKernel to improve:\n```cpp\n{}\n```\n", parent.node.source);
    task.parents.push_back(parent.node.id);
  }
  if (!context.parents.empty()) task.contract.base = context.parents.front().node.source;
  task.request.messages = {{llm::Role::user, std::move(text)}};
  return std::optional<ModelTask>(std::move(task));
}

Result<ModelProposal> proposal_of(const ProposalContext&, const ModelTask& task,
                                  const llm::AnswerResult& answer) {
  if (!answer) return ModelProposal{{}, answer.error().sentence};
  return ModelProposal{Proposal{.source = answer->source,
                                .plan = {},
                                .parents = task.parents,
                                .note = answer->note},
                       {}};
}

llm::CompletionRequest follow_up(const ModelTask& task, std::string_view answer,
                                 std::string_view fault_sentence) {
  llm::CompletionRequest request = task.request;
  request.messages.push_back({llm::Role::assistant, std::string(answer)});
  request.messages.push_back({llm::Role::user, std::string(fault_sentence)});
  return request;
}

}  // namespace ke
