// SPDX-License-Identifier: Apache-2.0
#include "llm/provider.hpp"

#include <fmt/format.h>

#include "base/json.hpp"

namespace ke::llm {

Digest prompt_digest(const CompletionRequest& request) {
  Json messages = Json::array();
  for (const Message& message : request.messages) {
    messages.push_back({{"role", enum_name(message.role)}, {"text", message.text}});
  }
  return digest_of(dump_json({{"stable", request.stable}, {"messages", std::move(messages)}}));
}

std::string plain_text(const CompletionRequest& request) {
  std::string text = request.stable;
  for (const Message& message : request.messages) {
    if (!text.empty()) text += "\n\n";
    if (request.messages.size() > 1) text += fmt::format("# {}\n\n", enum_name(message.role));
    text += message.text;
  }
  return text + "\n";
}

Usage& Usage::operator+=(const Usage& other) {
  input_tokens += other.input_tokens;
  cached_input_tokens += other.cached_input_tokens;
  cache_write_tokens += other.cache_write_tokens;
  output_tokens += other.output_tokens;
  estimated = estimated || other.estimated;
  return *this;
}

int64_t estimate_tokens(std::string_view text) {
  return (static_cast<int64_t>(text.size()) + 3) / 4;
}

Usage estimate_usage(const CompletionRequest& request, std::string_view answer) {
  Usage usage;
  usage.input_tokens = estimate_tokens(request.stable);
  for (const Message& message : request.messages) {
    usage.input_tokens += estimate_tokens(message.text);
  }
  usage.output_tokens = estimate_tokens(answer);
  usage.estimated = true;
  return usage;
}

}  // namespace ke::llm
