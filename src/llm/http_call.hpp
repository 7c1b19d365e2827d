// SPDX-License-Identifier: Apache-2.0
//
// One streamed call to an endpoint: what both HTTP protocols share. The protocol's part is a
// StreamReader; this file sends, reads events, recognises failures, and keeps keys out of texts.
#pragma once

#include <optional>
#include <string>

#include "base/json_fwd.hpp"
#include "llm/provider.hpp"
#include "llm/sse.hpp"
#include "os/http.hpp"

namespace ke::llm {

// What has come of an answer.
struct AnswerSoFar {
  std::string text;
  std::optional<FinishReason> finish;
  Usage usage;
  bool ended = false;  // the protocol's own end mark has come: nothing will follow
};

// How one protocol reads. Made anew for each call.
class StreamReader {
 public:
  virtual ~StreamReader() = default;

  virtual std::optional<Failure> on_event(const SseEvent& event, AnswerSoFar& answer) = 0;
  // The whole answer as one object, from a server that does not stream.
  virtual std::optional<Failure> on_document(const Json& document, AnswerSoFar& answer) = 0;
};

struct HttpCall {
  std::string provider;  // id, for messages
  std::string key_name;  // "OPENAI_API_KEY", for advice
  const CompletionRequest& request;
  os::HttpRequest http;
  StreamReader& reader;
};

Outcome run_call(const HttpCall& call, const ProviderContext& context, const OnDelta& on_delta,
                 const std::stop_token& stop);

// The limits of context, and the headers every call has.
os::HttpRequest new_http_request(std::string url, const Limits& limits);

// The failure that an error object means, as an answer with that status or as an event of a stream
// (status 0). Both protocols write {"error": {"type", "message"}}; servers that imitate them vary.
Failure failure_of_error(int status, const Json& body);

int64_t count_or_zero(const Json& object, const char* key);    // a token count that may be absent
std::string text_or_empty(const Json& object, const char* key);
const Json* object_at(const Json& object, const char* key);    // null unless it is an object

}  // namespace ke::llm
