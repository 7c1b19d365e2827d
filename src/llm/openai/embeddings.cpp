// SPDX-License-Identifier: Apache-2.0
//
// Asked: {"model", "input": [text…]}. Answered: {"data": [{"index", "embedding": [number…]}…],
// "usage": {"prompt_tokens"}}. What a server gets wrong here would rank documents at random, so all
// of it is checked: one vector a text, of one length, with finite numbers that are not all 0.
#include "llm/openai/embeddings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/json.hpp"
#include "llm/embedder.hpp"
#include "llm/http_call.hpp"
#include "llm/openai/endpoint.hpp"

namespace ke::llm {

namespace {

constexpr size_t kNumbersMax = 16'384;  // of a vector
// A search waits for it, and goes on without; nothing is generated that could take longer.
constexpr Milliseconds kVectorsIdleMax = std::chrono::seconds(30);
constexpr Milliseconds kVectorsTotalMax = std::chrono::seconds(120);

Failure malformed_vectors(std::string what) {
  return {FailureKind::malformed, std::move(what)};
}

// Empty when it is none.
std::vector<float> vector_in(const Json& entry) {
  const auto numbers = entry.find("embedding");
  if (numbers == entry.end() || !numbers->is_array() || numbers->size() > kNumbersMax) return {};
  std::vector<float> vector;
  bool telling = false;
  for (const Json& number : *numbers) {
    if (!number.is_number()) return {};
    vector.push_back(number.get<float>());
    if (!std::isfinite(vector.back())) return {};
    telling = telling || vector.back() != 0;
  }
  return telling ? vector : std::vector<float>();
}

class VectorReader final : public StreamReader {
 public:
  explicit VectorReader(size_t count) : vectors_(count) {}

  std::optional<Failure> on_event(const SseEvent&, AnswerSoFar&) override {
    return malformed_vectors("vectors came as a stream, not as one JSON object");
  }

  std::optional<Failure> on_document(const Json& document, AnswerSoFar& answer) override {
    if (const Json* usage = object_at(document, "usage")) {
      answer.usage.input_tokens = count_or_zero(*usage, "prompt_tokens");
    }
    if (!document.is_object()) return malformed_vectors("the answer is not a JSON object");
    if (object_at(document, "error") != nullptr) return failure_of_error(0, document);
    const auto data = document.find("data");
    if (data == document.end() || !data->is_array()) {
      return malformed_vectors("the answer has no list 'data'");
    }
    if (data->size() != vectors_.size()) {
      return malformed_vectors(fmt::format("{} vectors came for {} texts", data->size(),
                                           vectors_.size()));
    }
    for (size_t i = 0; i < data->size(); ++i) {
      if (std::optional<Failure> failure = take((*data)[i], i)) return failure;
    }
    answer.finish = FinishReason::stop;
    return std::nullopt;
  }

  const Vectors& vectors() const { return vectors_; }

 private:
  // Entries say which text they are of; servers that do not answer in order.
  std::optional<Failure> take(const Json& entry, size_t position) {
    if (!entry.is_object()) return malformed_vectors("an entry of 'data' is no object");
    const auto named = entry.find("index");
    const bool numbered = named != entry.end() && named->is_number_integer();
    const int64_t index = numbered ? named->get<int64_t>() : static_cast<int64_t>(position);
    if (index < 0 || index >= static_cast<int64_t>(vectors_.size())) {
      return malformed_vectors(fmt::format("there is no text {} to have a vector", index));
    }
    std::vector<float>& vector = vectors_[static_cast<size_t>(index)];
    if (!vector.empty()) return malformed_vectors(fmt::format("text {} has two vectors", index));
    vector = vector_in(entry);
    if (vector.empty()) {
      return malformed_vectors(fmt::format("the vector of text {} is not one of finite numbers, "
                                           "some of them not 0",
                                           index));
    }
    if (length_ != 0 && vector.size() != length_) {
      return malformed_vectors(fmt::format("vectors have {} numbers and then {}", length_,
                                           vector.size()));
    }
    length_ = vector.size();
    return std::nullopt;
  }

  Vectors vectors_;
  size_t length_ = 0;
};

class OpenAiEmbeddings final : public Provider {
 public:
  OpenAiEmbeddings(std::string model, OpenAiEndpoint endpoint, const ProviderContext& context)
      : model_(std::move(model)), endpoint_(std::move(endpoint)), context_(context) {}

  std::string id() const override { return "openai:" + model_; }

  Outcome complete(const CompletionRequest& request, const OnDelta&,
                   std::stop_token stop) override {
    Json texts = Json::array();
    for (const Message& message : request.messages) texts.push_back(message.text);
    VectorReader reader(request.messages.size());
    HttpCall call{id(), kOpenAiKeyName, request, endpoint_.request(context_.limits), reader};
    call.http.idle_max = std::min(call.http.idle_max, kVectorsIdleMax);
    call.http.total_max = std::min(call.http.total_max, kVectorsTotalMax);
    call.http.body = dump_json({{"model", model_}, {"input", std::move(texts)}});
    Outcome outcome = run_call(call, context_, {}, stop);
    // Not in the text that run_call makes: it would be counted as tokens of an answer.
    if (outcome) outcome->text = dump_json(reader.vectors());
    return outcome;
  }

 private:
  std::string model_;
  OpenAiEndpoint endpoint_;
  ProviderContext context_;
};

}  // namespace

Result<std::unique_ptr<Provider>> make_openai_embeddings(std::string_view model,
                                                         const ProviderContext& context) {
  OpenAiEndpoint endpoint = TRY(openai_endpoint(context.environment, "/embeddings"));
  return std::unique_ptr<Provider>(std::make_unique<OpenAiEmbeddings>(
      std::string(model), std::move(endpoint), context));
}

}  // namespace ke::llm
