// SPDX-License-Identifier: Apache-2.0
//
// The chat completions protocol of OpenAI, spoken by vLLM, llama.cpp, Ollama, OpenRouter and many
// others too. They differ in which options they take; an option that is refused by name is left out
// or renamed, and that is remembered.
#include "llm/provider.hpp"

#include <atomic>

#include "base/json.hpp"
#include "llm/http_call.hpp"
#include "llm/openai/embeddings.hpp"
#include "llm/openai/endpoint.hpp"

namespace ke::llm {

namespace {

FinishReason finish_of(const std::string& reason) {
  if (reason == "length") return FinishReason::length;
  if (reason == "content_filter") return FinishReason::refusal;
  return FinishReason::stop;
}

class ChatReader final : public StreamReader {
 public:
  std::optional<Failure> on_event(const SseEvent& event, AnswerSoFar& answer) override {
    if (event.data == "[DONE]") {
      answer.ended = true;
      // Some servers give no reason for the end.
      if (!answer.finish && !answer.text.empty()) answer.finish = FinishReason::stop;
      return std::nullopt;
    }
    const Result<Json> chunk = parse_json(event.data);
    if (!chunk || !chunk->is_object()) {
      return Failure{FailureKind::malformed, "an event of the stream is not a JSON object"};
    }
    return take(*chunk, "delta", answer);
  }

  std::optional<Failure> on_document(const Json& document, AnswerSoFar& answer) override {
    if (!document.is_object()) {
      return Failure{FailureKind::malformed, "the answer is not a JSON object"};
    }
    return take(document, "message", answer);
  }

 private:
  std::optional<Failure> take(const Json& chunk, const char* part, AnswerSoFar& answer) {
    if (chunk.contains("error") && !chunk["error"].is_null()) return failure_of_error(0, chunk);
    if (const Json* usage = object_at(chunk, "usage")) {
      answer.usage.input_tokens = count_or_zero(*usage, "prompt_tokens");
      answer.usage.output_tokens = count_or_zero(*usage, "completion_tokens");
      if (const Json* details = object_at(*usage, "prompt_tokens_details")) {
        answer.usage.cached_input_tokens = count_or_zero(*details, "cached_tokens");
      }
    }
    const auto choices = chunk.find("choices");
    if (choices == chunk.end() || !choices->is_array() || choices->empty()) return std::nullopt;
    const Json& choice = choices->front();
    if (const Json* piece = object_at(choice, part)) {
      answer.text += text_or_empty(*piece, "content");
      const std::string refusal = text_or_empty(*piece, "refusal");
      refused_ = refused_ || !refusal.empty();
      answer.text += refusal;
    }
    const std::string reason = text_or_empty(choice, "finish_reason");
    if (!reason.empty()) answer.finish = refused_ ? FinishReason::refusal : finish_of(reason);
    return std::nullopt;
  }

  bool refused_ = false;
};

class OpenAiProvider final : public Provider {
 public:
  OpenAiProvider(std::string model, OpenAiEndpoint endpoint, const ProviderContext& context)
      : model_(std::move(model)), endpoint_(std::move(endpoint)), context_(context) {
    // The house itself takes only the new name of the limit; many imitations only the old one.
    new_limit_name_ = endpoint_.url.starts_with("https://api.openai.com/");
  }

  std::string id() const override { return "openai:" + model_; }

  Outcome complete(const CompletionRequest& request, const OnDelta& on_delta,
                   std::stop_token stop) override {
    while (true) {
      const Options options{new_limit_name_, temperature_, usage_};
      ChatReader reader;
      HttpCall call{id(), kOpenAiKeyName, request, endpoint_.request(context_.limits), reader};
      call.http.body = body_of(request, options);
      Outcome outcome = run_call(call, context_, on_delta, stop);
      const bool refused = !outcome && outcome.error().kind == FailureKind::refused;
      if (!refused || !adapt(options, outcome.error().message)) return outcome;
    }
  }

 private:
  struct Options {
    bool new_limit_name, temperature, usage;
  };

  std::string body_of(const CompletionRequest& request, const Options& options) const {
    Json messages = Json::array();
    if (!request.stable.empty()) {
      messages.push_back({{"role", "system"}, {"content", request.stable}});
    }
    for (const Message& message : request.messages) {
      messages.push_back({{"role", enum_name(message.role)}, {"content", message.text}});
    }
    Json body{{"model", model_}, {"messages", std::move(messages)}, {"stream", true}};
    body[options.new_limit_name ? "max_completion_tokens" : "max_tokens"] =
        request.output_tokens_max;
    if (options.usage) body["stream_options"] = {{"include_usage", true}};
    if (options.temperature && request.temperature) body["temperature"] = *request.temperature;
    return dump_json(body);
  }

  // Whether the refusal names an option of ours that can be changed; each is changed once.
  bool adapt(const Options& used, const std::string& message) {
    const auto names = [&](const char* option) {
      return message.find(option) != std::string::npos;
    };
    if (names("max_tokens") && names("max_completion_tokens")) {
      // "Use the other one instead": both are named, the one we sent is at fault.
      return !limit_name_changed_.exchange(true) && flip(new_limit_name_, used.new_limit_name);
    }
    if (names("max_completion_tokens") && used.new_limit_name) {
      return !limit_name_changed_.exchange(true) && flip(new_limit_name_, true);
    }
    if (names("temperature") && used.temperature) return flip(temperature_, true);
    if (names("stream_options") && used.usage) return flip(usage_, true);
    return false;
  }

  static bool flip(std::atomic<bool>& option, bool used) {
    option = !used;
    return true;
  }

  std::string model_;
  OpenAiEndpoint endpoint_;
  ProviderContext context_;
  std::atomic<bool> new_limit_name_{false}, limit_name_changed_{false};
  std::atomic<bool> temperature_{true}, usage_{true};
};

Result<std::unique_ptr<Provider>> make(std::string_view argument, const ProviderContext& context) {
  OpenAiEndpoint endpoint = TRY(openai_endpoint(context.environment, "/chat/completions"));
  return std::unique_ptr<Provider>(
      std::make_unique<OpenAiProvider>(std::string(argument), std::move(endpoint), context));
}

}  // namespace

extern const ProviderInfo provider_openai;
const ProviderInfo provider_openai{
    "openai", "NAME", "chat completions: OpenAI, or vLLM, llama.cpp, Ollama… at OPENAI_BASE_URL",
    true, make, make_openai_embeddings};

}  // namespace ke::llm
