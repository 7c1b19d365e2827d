// SPDX-License-Identifier: Apache-2.0
//
// What a language model is asked for one candidate. A task is made on the engine's thread and is a
// function of the context alone: a replay makes it again and compares digests. Asking, which takes
// long and may fail, is somebody else's business (model/asker.hpp).
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/enum_names.hpp"
#include "base/json_fwd.hpp"
#include "base/result.hpp"
#include "llm/answer.hpp"
#include "llm/provider.hpp"
#include "propose/model/advice.hpp"
#include "propose/model/ground.hpp"
#include "propose/proposer.hpp"

namespace ke {

// source: writes or edits a whole kernel (proposer `llm`). plan: edits the plan as JSON (proposer
// `strategist`).
enum class ModelStyle : uint8_t { source, plan };

struct ModelTask {
  ModelStyle style = ModelStyle::source;
  Agent agent = Agent::proposal;
  llm::CompletionRequest request;
  llm::AnswerContract contract;
  Diagnosis diagnosis;
  PromptGround ground;                 // all that was at hand
  std::vector<std::string> documents;  // paths of those in the prompt, in its order
  NodeKind kind = NodeKind::draft;
  Memory memory = Memory::parents;
  std::vector<NodeId> parents;
};

struct PromptOptions {
  int64_t tokens_max = 24'000;          // of the whole prompt, estimated
  int64_t documents_tokens_max = 6'000;
  GroundSource* ground = nullptr;  // null: no profile, no documents and no tools
};

// The context memory's verdict without a model: on the context's parents (or, for a draft, on the
// problem), from the graph's rows. Deterministic.
Result<Diagnosis> diagnose(const ProposalContext& context);

// Nothing when there is nothing to ask (a plan is to be edited, but there is none). Errc::refused
// with a sentence when the contract, the problem and the base alone are longer than allowed: no
// failure of the system, so the caller goes on without this task. Diagnosis and documents are those
// of the context's advice, as far as it has any.
Result<std::optional<ModelTask>> make_task(const ProposalContext& context, ModelStyle style,
                                           const PromptOptions& options);

// Tools that a model may use for one proposal: a search, a document and some rounds with the
// compiler. Every use sends the whole conversation again, so that many more would cost more than
// another proposal does.
inline constexpr int kToolCallsMax = 6;

// A proposal from a parsed answer, or the sentence that the next prompt should hold, or the tool
// that is to be used first. Plans are checked, lowered and printed here.
struct ModelProposal {
  std::optional<Proposal> proposal;
  std::string fault;
  std::optional<llm::ToolCall> call = std::nullopt;
};
Result<ModelProposal> proposal_of(const ProposalContext& context, const ModelTask& task,
                                  const llm::AnswerResult& answer);

// The conversation goes on: the answer, and what was wrong with it.
llm::CompletionRequest follow_up(const ModelTask& task, std::string_view answer,
                                 std::string_view fault_sentence);

// Text of a tool as prompts take it: cut at a line when it is long. What was cut is not cut again.
std::string tool_text(std::string_view text);

// The conversation goes on: the answer, and what the tool gave that it asked for. `left`: tools
// that may still be used.
llm::CompletionRequest go_on(const ModelTask& task, std::string_view answer, const ToolUse& use,
                             int left);

}  // namespace ke

template <>
inline constexpr std::array<std::string_view, 2> ke::kEnumNames<ke::ModelStyle>{"source", "plan"};
