// SPDX-License-Identifier: Apache-2.0
//
// Where an OpenAI-compatible server is, and the key for it: the same for everything asked of it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "llm/provider.hpp"

namespace ke::llm {

inline constexpr const char* kOpenAiKeyName = "OPENAI_API_KEY";

// What a base URL as people write it makes of `end`, which is "/chat/completions" or "/embeddings":
// "http://host:8000", "http://host:8000/v1/", "https://host/api/v1/chat/completions". A version
// that stands anywhere in the path is kept.
Result<std::string> openai_url(std::string_view base, std::string_view end);

struct OpenAiEndpoint {
  std::string url;
  std::optional<Secret> key;

  // With the key in its header.
  os::HttpRequest request(const Limits& limits) const;
};

// From OPENAI_BASE_URL and OPENAI_API_KEY. Errc::invalid with a sentence when both are absent.
Result<OpenAiEndpoint> openai_endpoint(const Environment& environment, std::string_view end);

}  // namespace ke::llm
