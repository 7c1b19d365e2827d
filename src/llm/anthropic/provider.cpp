// SPDX-License-Identifier: Apache-2.0
//
// The messages protocol of Anthropic. The stable part is the system prompt and carries the mark
// that has it cached; tokens read from and written to the cache have prices of their own.
#include "llm/provider.hpp"

#include <atomic>

#include "base/json.hpp"
#include "llm/http_call.hpp"

namespace ke::llm {

namespace {

constexpr const char* kDefaultUrl = "https://api.anthropic.com";
constexpr const char* kKeyName = "ANTHROPIC_API_KEY";

FinishReason finish_of(const std::string& reason) {
  if (reason == "max_tokens" || reason == "model_context_window_exceeded") {
    return FinishReason::length;
  }
  if (reason == "refusal") return FinishReason::refusal;
  return FinishReason::stop;
}

// The count of input tokens leaves out what went through the cache.
void take_usage(const Json* usage, Usage& into) {
  if (usage == nullptr) return;
  if (usage->contains("input_tokens")) {
    into.cached_input_tokens = count_or_zero(*usage, "cache_read_input_tokens");
    into.cache_write_tokens = count_or_zero(*usage, "cache_creation_input_tokens");
    into.input_tokens = count_or_zero(*usage, "input_tokens") + into.cached_input_tokens +
                        into.cache_write_tokens;
  }
  if (usage->contains("output_tokens")) {
    into.output_tokens = count_or_zero(*usage, "output_tokens");  // so far, not since the last
  }
}

class MessagesReader final : public StreamReader {
 public:
  std::optional<Failure> on_event(const SseEvent& event, AnswerSoFar& answer) override {
    const Result<Json> parsed = parse_json(event.data);
    if (!parsed || !parsed->is_object()) {
      return Failure{FailureKind::malformed, "an event of the stream is not a JSON object"};
    }
    const std::string type = text_or_empty(*parsed, "type");
    if (type == "error") return failure_of_error(0, *parsed);
    if (type == "message_start") {
      const Json* message = object_at(*parsed, "message");
      if (message != nullptr) take_usage(object_at(*message, "usage"), answer.usage);
    } else if (type == "content_block_start") {
      if (const Json* block = object_at(*parsed, "content_block")) {
        answer.text += text_or_empty(*block, "text");
      }
    } else if (type == "content_block_delta") {
      const Json* delta = object_at(*parsed, "delta");
      if (delta != nullptr && text_or_empty(*delta, "type") == "text_delta") {
        answer.text += text_or_empty(*delta, "text");  // thinking is not part of the answer
      }
    } else if (type == "message_delta") {
      take_usage(object_at(*parsed, "usage"), answer.usage);
      const Json* delta = object_at(*parsed, "delta");
      const std::string reason = delta == nullptr ? "" : text_or_empty(*delta, "stop_reason");
      if (!reason.empty()) answer.finish = finish_of(reason);
    } else if (type == "message_stop") {
      answer.ended = true;
    }  // ping, content_block_stop, and whatever is added later
    return std::nullopt;
  }

  std::optional<Failure> on_document(const Json& document, AnswerSoFar& answer) override {
    if (text_or_empty(document, "type") == "error") return failure_of_error(0, document);
    const auto content = document.find("content");
    if (!document.is_object() || content == document.end() || !content->is_array()) {
      return Failure{FailureKind::malformed, "the answer is not a message"};
    }
    for (const Json& block : *content) {
      if (text_or_empty(block, "type") == "text") answer.text += text_or_empty(block, "text");
    }
    take_usage(object_at(document, "usage"), answer.usage);
    answer.finish = finish_of(text_or_empty(document, "stop_reason"));
    return std::nullopt;
  }
};

class AnthropicProvider final : public Provider {
 public:
  AnthropicProvider(std::string model, std::string url, std::optional<Secret> key,
                    const ProviderContext& context)
      : model_(std::move(model)), url_(std::move(url)), key_(std::move(key)), context_(context) {}

  std::string id() const override { return "anthropic:" + model_; }

  Outcome complete(const CompletionRequest& request, const OnDelta& on_delta,
                   std::stop_token stop) override {
    while (true) {
      const bool temperature = temperature_ && request.temperature;
      MessagesReader reader;
      HttpCall call{id(), kKeyName, request, new_http_request(url_, context_.limits), reader};
      call.http.headers.push_back({"anthropic-version", "2023-06-01"});
      if (key_) call.http.headers.push_back({"x-api-key", std::string(key_->reveal())});
      call.http.body = body_of(request, temperature);
      Outcome outcome = run_call(call, context_, on_delta, stop);
      const bool refused = !outcome && outcome.error().kind == FailureKind::refused;
      if (!refused || !temperature ||
          outcome.error().message.find("temperature") == std::string::npos) {
        return outcome;
      }
      temperature_ = false;  // some models have none
    }
  }

 private:
  std::string body_of(const CompletionRequest& request, bool temperature) const {
    Json messages = Json::array();
    for (const Message& message : request.messages) {
      messages.push_back({{"role", enum_name(message.role)}, {"content", message.text}});
    }
    Json body{{"model", model_},
              {"max_tokens", request.output_tokens_max},
              {"messages", std::move(messages)},
              {"stream", true}};
    if (!request.stable.empty()) {
      body["system"] = Json::array({{{"type", "text"},
                                     {"text", request.stable},
                                     {"cache_control", {{"type", "ephemeral"}}}}});
    }
    if (temperature) body["temperature"] = *request.temperature;
    return dump_json(body);
  }

  std::string model_, url_;
  std::optional<Secret> key_;
  ProviderContext context_;
  std::atomic<bool> temperature_{true};
};

Result<std::unique_ptr<Provider>> make(std::string_view argument, const ProviderContext& context) {
  const std::optional<std::string> base = context.environment.text("ANTHROPIC_BASE_URL");
  std::optional<Secret> key = context.environment.secret(kKeyName);
  if (!key && !base) {
    return Error{Errc::invalid, "ANTHROPIC_API_KEY is not set; export it or put it into .env"};
  }
  std::string url = base.value_or(kDefaultUrl);
  if (!url.starts_with("http://") && !url.starts_with("https://")) {
    return Error{Errc::invalid, "ANTHROPIC_BASE_URL does not begin with http:// or https://"};
  }
  while (url.ends_with('/')) url.pop_back();
  if (url.ends_with("/v1")) url.resize(url.size() - 3);
  return std::unique_ptr<Provider>(std::make_unique<AnthropicProvider>(
      std::string(argument), url + "/v1/messages", std::move(key), context));
}

}  // namespace

extern const ProviderInfo provider_anthropic;
const ProviderInfo provider_anthropic{"anthropic", "NAME", "messages of Anthropic's models", true,
                                      make};

}  // namespace ke::llm
