// SPDX-License-Identifier: Apache-2.0
//
// OPENAI_BASE_URL as people write it.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"

namespace ke::llm {

// "http://host:8000", "http://host:8000/v1/", "https://host/api/v1/chat/completions": the address
// of chat completions there. A version that stands anywhere in the path is kept.
Result<std::string> chat_completions_url(std::string_view base);

}  // namespace ke::llm
