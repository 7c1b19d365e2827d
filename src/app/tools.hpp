// SPDX-License-Identifier: Apache-2.0
//
// The tools that a model may use before it writes its kernel, and what they say, as plain text.
// Whatever is wrong with a call is text too; an Error only when the system failed.
#pragma once

#include <string>

#include "eval/evaluator.hpp"
#include "knowledge/library.hpp"
#include "llm/tool_call.hpp"
#include "propose/model/ground.hpp"

namespace ke::app {

// Builds, and looks with the target's tools, in the build room; nothing of the kernel is executed.
Result<std::string> compile_text(Evaluator& evaluator, const std::string& source);
Result<std::string> profile_text(Evaluator& evaluator, const std::string& source);

// What tools see in a source that the judge has accepted, and what is counted while it runs.
Result<KernelProfile> profile_accepted(Evaluator& evaluator, const std::string& source);
std::string text_of(const KernelProfile& profile);

// search, find and read in the documents that searches may find: no skill that waits for a review.
Result<std::string> knowledge_text(knowledge::Library& library, const std::string& target,
                                   const llm::ToolCall& call);

// What deep search is shown of a document, and what a search or find of its finds.
IndexEntry entry_of(const knowledge::Document& document, std::string text);
Result<Found> found_by(knowledge::Library& library, const std::string& target,
                       const llm::ToolCall& call);

}  // namespace ke::app
