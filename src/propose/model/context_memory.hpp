// SPDX-License-Identifier: Apache-2.0
//
// The sub-agent *context memory* as a model runs it: what it is asked before a kernel, and the
// diagnosis in its answer. diagnose() does the same without a model.
#pragma once

#include <optional>
#include <string_view>
#include <tl/expected.hpp>

#include "llm/answer.hpp"
#include "propose/model/task.hpp"

namespace ke {

// Nothing when there is nothing to ask: a plan is to be edited, but there is none. Errc::refused as
// make_task.
Result<std::optional<ModelTask>> make_memory_task(const ProposalContext& context, ModelStyle style,
                                                  const PromptOptions& options);

// The answer is hostile: it is of this form and these sizes, or a fault.
tl::expected<Diagnosis, llm::AnswerProblem> read_diagnosis(std::string_view answer,
                                                           llm::FinishReason finish);

}  // namespace ke
