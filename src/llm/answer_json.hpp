// SPDX-License-Identifier: Apache-2.0
//
// Reads an answer that has to be one JSON object: in a fenced block, or bare. The text is hostile
// input of any shape; what cannot be used is a typed fault with a sentence for the next prompt.
#pragma once

#include <string_view>

#include "base/json_fwd.hpp"
#include "llm/answer.hpp"

namespace ke::llm {

inline constexpr size_t kAnswerJsonBytesMax = 32 << 10;

using JsonResult = tl::expected<Json, AnswerProblem>;

// The last block counts when there are several. `what`: how sentences call it, as "the diagnosis".
JsonResult parse_json_answer(std::string_view text, FinishReason finish, std::string_view what);

}  // namespace ke::llm
