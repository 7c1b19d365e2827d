// SPDX-License-Identifier: Apache-2.0
//
// The sub-agent *deep search* as a model runs it: it is shown what the search without a model ranks
// first for a diagnosis, may search further, and chooses what the prompt for a kernel holds.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "llm/answer.hpp"
#include "propose/model/task.hpp"

namespace ke {

// Answers that may ask for searches. Every round sends the conversation again.
inline constexpr int kSearchRoundsMax = 2;

// The diagnosis is the context's advice, or the one without a model. Nothing when there is no
// document to choose from.
Result<std::optional<ModelTask>> make_reader_task(const ProposalContext& context, ModelStyle style,
                                                  const PromptOptions& options);

// One of the two.
struct ReaderAnswer {
  std::optional<std::vector<ChosenDocument>> documents;
  std::vector<llm::ToolCall> searches;
};

// The answer is hostile: what it chooses was `shown`, and all of it is of this form and these
// sizes, or it is a fault.
tl::expected<ReaderAnswer, llm::AnswerProblem> read_choice(std::string_view answer,
                                                           llm::FinishReason finish,
                                                           const std::vector<std::string>& shown);

// The conversation goes on: the answer, and what its searches found. `left`: rounds that may still
// follow.
llm::CompletionRequest go_on_reading(const ModelTask& task, std::string_view answer,
                                     const std::vector<Found>& found, int left);

}  // namespace ke
