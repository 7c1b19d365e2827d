// SPDX-License-Identifier: Apache-2.0
#include "llm/openai/endpoint.hpp"

#include "llm/http_call.hpp"

namespace ke::llm {

namespace {

constexpr const char* kDefaultUrl = "https://api.openai.com/v1";

bool has_version(std::string_view path) {
  for (size_t at = path.find("/v"); at != std::string_view::npos; at = path.find("/v", at + 1)) {
    if (at + 2 < path.size() && path[at + 2] >= '0' && path[at + 2] <= '9') return true;
  }
  return false;
}

}  // namespace

Result<std::string> openai_url(std::string_view base, std::string_view end) {
  if (!base.starts_with("http://") && !base.starts_with("https://")) {
    return Error{Errc::invalid,
                 "OPENAI_BASE_URL does not begin with http:// or https://; write for example "
                 "http://localhost:8000/v1"};
  }
  while (base.ends_with('/')) base.remove_suffix(1);
  for (const std::string_view known : {"/chat/completions", "/embeddings"}) {
    if (base.ends_with(known)) base.remove_suffix(known.size());
  }
  const size_t host = base.find("://") + 3;
  const size_t path = base.find('/', host);
  const bool versioned = path != std::string_view::npos && has_version(base.substr(path));
  return std::string(base) + (versioned ? "" : "/v1") + std::string(end);
}

os::HttpRequest OpenAiEndpoint::request(const Limits& limits) const {
  os::HttpRequest request = new_http_request(url, limits);
  if (key) request.headers.push_back({"Authorization", "Bearer " + std::string(key->reveal())});
  return request;
}

Result<OpenAiEndpoint> openai_endpoint(const Environment& environment, std::string_view end) {
  const std::optional<std::string> base = environment.text("OPENAI_BASE_URL");
  std::optional<Secret> key = environment.secret(kOpenAiKeyName);
  if (!key && !base) {
    return Error{Errc::invalid,
                 "OPENAI_API_KEY is not set; export it, put it into .env, or name a server of your "
                 "own in OPENAI_BASE_URL"};
  }
  return OpenAiEndpoint{TRY(openai_url(base.value_or(kDefaultUrl), end)), std::move(key)};
}

}  // namespace ke::llm
