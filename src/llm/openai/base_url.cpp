// SPDX-License-Identifier: Apache-2.0
#include "llm/openai/base_url.hpp"

namespace ke::llm {

namespace {

bool has_version(std::string_view path) {
  for (size_t at = path.find("/v"); at != std::string_view::npos; at = path.find("/v", at + 1)) {
    if (at + 2 < path.size() && path[at + 2] >= '0' && path[at + 2] <= '9') return true;
  }
  return false;
}

}  // namespace

Result<std::string> chat_completions_url(std::string_view base) {
  constexpr std::string_view kEnd = "/chat/completions";
  if (!base.starts_with("http://") && !base.starts_with("https://")) {
    return Error{Errc::invalid,
                 "OPENAI_BASE_URL does not begin with http:// or https://; write for example "
                 "http://localhost:8000/v1"};
  }
  while (base.ends_with('/')) base.remove_suffix(1);
  if (base.ends_with(kEnd)) base.remove_suffix(kEnd.size());
  const size_t host = base.find("://") + 3;
  const size_t path = base.find('/', host);
  const bool versioned = path != std::string_view::npos && has_version(base.substr(path));
  return std::string(base) + (versioned ? "" : "/v1") + std::string(kEnd);
}

}  // namespace ke::llm
