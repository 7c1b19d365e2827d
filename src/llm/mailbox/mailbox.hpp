// SPDX-License-Identifier: Apache-2.0
//
// The folder of the provider `mailbox`, seen from both sides. Prompt number N is NNNN.prompt.md (a
// head between `---` lines, then the prompt) and its answer NNNN.answer.md, both written whole or
// not at all. A prompt that the folder already holds keeps its number, so a run that was killed
// while it waited finds the answer that came meanwhile.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace ke::llm {

struct MailboxEntry {
  int64_t number = 0;
  std::string digest;  // of the prompt, as its head says
  bool answered = false;
  std::filesystem::path prompt;
  std::filesystem::path answer;
  std::string asks = {};  // CompletionRequest::purpose; empty when nobody said
};

// In order of number. Errc::not_found when there is no such folder.
Result<std::vector<MailboxEntry>> list_mailbox(const std::filesystem::path& folder);

// The prompt itself, without its head. Errc::not_found.
Result<std::string> read_prompt(const std::filesystem::path& folder, int64_t number);

// Errc::not_found: no such prompt; conflict: it has an answer; invalid: the text is empty.
Result<void> answer_prompt(const std::filesystem::path& folder, int64_t number,
                           std::string_view text);

}  // namespace ke::llm
