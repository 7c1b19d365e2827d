// SPDX-License-Identifier: Apache-2.0
//
// Both protocols against scripted bytes: what is sent, and what each kind of answer means. The real
// client meets a real server in tests/llm.
#include "llm/http_call.hpp"

#include <gtest/gtest.h>

#include "llm/openai/endpoint.hpp"
#include "llm/testing.hpp"

namespace ke::llm {
namespace {

const std::string kSentKey = "sk-test-0123456789";

struct Protocols : ::testing::Test, Bench {
  Protocols() : Bench({{"OPENAI_API_KEY", kSentKey}, {"ANTHROPIC_API_KEY", kSentKey}}) {}

  Outcome ask(std::string_view spec, os::FakeReply reply) {
    http.add(std::move(reply));
    return bare(spec)->complete(question("Hello?", "Rules."), {}, {});
  }
  Json sent() { return parse_json(http.requests().back().body).value(); }
  std::string sent_header(const std::string& name) {
    os::HttpResponse as{0, http.requests().back().headers};
    return as.header(name) == nullptr ? "" : *as.header(name);
  }
};

os::FakeReply stream(std::vector<std::string> events) {
  os::FakeReply reply{200, {{"Content-Type", "text/event-stream"}}};
  for (const std::string& event : events) reply.chunks.push_back("data: " + event + "\n\n");
  return reply;
}

os::FakeReply chat(const std::string& finish, const std::string& delta = R"({"content":"Hi"})") {
  return stream({R"({"choices":[{"delta":)" + delta + R"(,"finish_reason":null}],"usage":null})",
                 R"({"choices":[{"delta":{},"finish_reason":")" + finish + "\"}]}",
                 R"({"choices":[],"usage":{"prompt_tokens":20,"completion_tokens":3,)"
                 R"("prompt_tokens_details":{"cached_tokens":8}}})",
                 "[DONE]"});
}

TEST_F(Protocols, OpenAiSendsTheStablePartFirstAndReadsTheStream) {
  const Outcome outcome = ask("openai:m", chat("stop"));
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->text, "Hi");
  EXPECT_EQ(outcome->finish, FinishReason::stop);
  EXPECT_EQ(outcome->usage, (Usage{20, 8, 0, 3, false}));
  EXPECT_EQ(outcome->provider, "openai:m");
  EXPECT_EQ(http.requests().back().url, "https://api.openai.com/v1/chat/completions");
  EXPECT_EQ(sent_header("Authorization"), "Bearer " + kSentKey);
  EXPECT_EQ(dump_json(sent()),
            R"({"max_completion_tokens":16384,"messages":[{"content":"Rules.","role":"system"},)"
            R"({"content":"Hello?","role":"user"}],"model":"m","stream":true,)"
            R"("stream_options":{"include_usage":true}})");
}

TEST_F(Protocols, AnthropicMarksTheStablePartForTheCacheAndReadsTheStream) {
  const Outcome outcome = ask(
      "anthropic:m",
      stream({R"({"type":"message_start","message":{"usage":{"input_tokens":5,)"
              R"("cache_creation_input_tokens":7,"cache_read_input_tokens":100,)"
              R"("output_tokens":1}}})",
              R"({"type":"content_block_start","index":0,"content_block":{"type":"thinking"}})",
              R"({"type":"content_block_delta","delta":{"type":"thinking_delta","thinking":"x"}})",
              R"({"type":"ping"})",
              R"({"type":"content_block_start","content_block":{"type":"text","text":""}})",
              R"({"type":"content_block_delta","delta":{"type":"text_delta","text":"Hi"}})",
              R"({"type":"message_delta","delta":{"stop_reason":"end_turn"},)"
              R"("usage":{"output_tokens":9}})",
              R"({"type":"message_stop"})"}));
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->text, "Hi");
  EXPECT_EQ(outcome->usage, (Usage{112, 100, 7, 9, false}));
  EXPECT_EQ(http.requests().back().url, "https://api.anthropic.com/v1/messages");
  EXPECT_EQ(sent_header("x-api-key"), kSentKey);
  EXPECT_EQ(sent_header("anthropic-version"), "2023-06-01");
  EXPECT_EQ(dump_json(sent()),
            R"({"max_tokens":16384,"messages":[{"content":"Hello?","role":"user"}],"model":"m",)"
            R"("stream":true,"system":[{"cache_control":{"type":"ephemeral"},"text":"Rules.",)"
            R"("type":"text"}]})");
}

TEST_F(Protocols, RecogniseRefusalsAndCuts) {
  EXPECT_EQ(ask("openai:m", chat("length"))->finish, FinishReason::length);
  EXPECT_EQ(ask("openai:m", chat("content_filter"))->finish, FinishReason::refusal);
  const Outcome refusal = ask("openai:m", chat("stop", R"({"refusal":"No."})"));
  EXPECT_EQ(refusal->finish, FinishReason::refusal);
  EXPECT_EQ(refusal->text, "No.");
  const auto message = [&](const std::string& reason) {
    return ask("anthropic:m",
               stream({R"({"type":"message_delta","delta":{"stop_reason":")" + reason + "\"}}",
                       R"({"type":"message_stop"})"}))
        ->finish;
  };
  EXPECT_EQ(message("max_tokens"), FinishReason::length);
  EXPECT_EQ(message("model_context_window_exceeded"), FinishReason::length);
  EXPECT_EQ(message("refusal"), FinishReason::refusal);
  EXPECT_EQ(message("stop_sequence"), FinishReason::stop);
}

TEST_F(Protocols, ReadAnAnswerThatIsNotStreamed) {
  const Outcome chat = ask(
      "openai:m", {200,
                   {{"Content-Type", "application/json"}},
                   {R"({"choices":[{"message":{"content":"Whole"},"finish_reason":"stop"}],)",
                    R"("usage":{"prompt_tokens":4,"completion_tokens":2}})"}});
  EXPECT_EQ(chat->text, "Whole");
  EXPECT_EQ(chat->usage, (Usage{4, 0, 0, 2, false}));
  const Outcome message =
      ask("anthropic:m", {200,
                          {{"Content-Type", "application/json"}},
                          {R"({"type":"message","content":[{"type":"text","text":"Whole"}],)"
                           R"("stop_reason":"end_turn","usage":{"input_tokens":1}})"}});
  EXPECT_EQ(message->text, "Whole");
}

TEST_F(Protocols, EveryErrorHasItsKind) {
  struct Case {
    int status;
    std::string body;
    FailureKind kind;
  };
  using enum FailureKind;
  const auto error = [](const std::string& type, const std::string& message,
                        const std::string& code = "") {
    return R"({"type":"error","error":{"type":")" + type + R"(","message":")" + message +
           R"(","code":")" + code + "\"}}";
  };
  const Case cases[] = {
      {401, error("authentication_error", "invalid x-api-key"), unauthorized},
      {401, error("invalid_request_error", "Incorrect API key provided", "invalid_api_key"),
       unauthorized},
      {403, error("permission_error", "no"), unauthorized},
      {402, error("billing_error", "no"), unauthorized},
      {429, error("insufficient_quota", "You exceeded your current quota", "insufficient_quota"),
       unauthorized},
      {400, error("invalid_request_error", "Your credit balance is too low"), unauthorized},
      {404, error("not_found_error", "model: m"), refused},
      {400, error("invalid_request_error", "messages: empty"), refused},
      {307, "", refused},
      {413, error("request_too_large", "Request exceeds the maximum size"), context_overflow},
      {400, error("invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"),
       context_overflow},
      {400, error("invalid_request_error",
                  "This model's maximum context length is 8192 tokens. However, you requested 9000",
                  "context_length_exceeded"),
       context_overflow},
      {400, R"({"error":{"code":400,"message":"the request exceeds the available context size",)"
            R"("type":"exceed_context_size_error","n_ctx":4096}})",
       context_overflow},
      {429, error("rate_limit_error", "slow down"), rate_limited},
      {429, error("tokens", "Request too large for m: Limit 30000, Requested 40000",
                  "rate_limit_exceeded"),
       context_overflow},
      {408, "", timed_out},
      {500, error("api_error", "oops"), overloaded},
      {502, "<html>Bad gateway</html>", overloaded},
      {503, R"({"error":"model is loading"})", overloaded},
      {529, error("overloaded_error", "Overloaded"), overloaded},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.body);
    for (const char* spec : {"openai:m", "anthropic:m"}) {
      const Outcome outcome = ask(spec, {c.status, {}, {c.body}});
      ASSERT_FALSE(outcome);
      EXPECT_EQ(outcome.error().kind, c.kind) << outcome.error().message;
    }
  }
}

TEST_F(Protocols, TellTheSizeOfAContextThatOverflowed) {
  const auto limit_in = [&](const std::string& message) {
    return ask("openai:m", {400, {}, {R"({"error":{"message":")" + message + "\"}}"}})
        .error()
        .context_tokens_max.value_or(0);
  };
  EXPECT_EQ(limit_in("prompt is too long: 210000 tokens > 200000 maximum"), 200'000);
  EXPECT_EQ(limit_in("input length and `max_tokens` exceed context limit: 198000 + 8192 > 200000"),
            200'000);
  EXPECT_EQ(limit_in("This model's maximum context length is 8,192 tokens."), 8192);
  EXPECT_EQ(limit_in("the request exceeds the available context size (4096 tokens)"), 4096);
  EXPECT_EQ(limit_in("the context window is full"), 0);
}

TEST_F(Protocols, ErrorsInTheMiddleOfAStreamCount) {
  Outcome outcome = ask("anthropic:m",
                        stream({R"({"type":"content_block_delta",)"
                                R"("delta":{"type":"text_delta","text":"part"}})",
                                R"({"type":"error","error":{"type":"overloaded_error",)"
                                R"("message":"Overloaded"}})"}));
  EXPECT_EQ(outcome.error().kind, FailureKind::overloaded);
  EXPECT_GT(outcome.error().usage.output_tokens, 0);  // what had come is paid for
  outcome = ask("openai:m", stream({R"({"error":{"code":429,"message":"slow down"}})"}));
  EXPECT_EQ(outcome.error().kind, FailureKind::rate_limited);
  EXPECT_EQ(ask("openai:m", stream({"{broken"})).error().kind, FailureKind::malformed);
  EXPECT_EQ(ask("anthropic:m", stream({"[1]"})).error().kind, FailureKind::malformed);
  outcome = ask("openai:m", stream({R"({"choices":[{"delta":{"content":"par"}}]})"}));
  EXPECT_EQ(outcome.error().kind, FailureKind::unreachable);
  EXPECT_EQ(outcome.error().message, "openai:m: the answer ended in the middle");
}

TEST_F(Protocols, SurviveFieldsOfEveryWrongType) {
  for (const char* json :
       {"{}", "[]", "1", "null", R"({"choices":1})", R"({"choices":[1]})",
        R"({"choices":[{"delta":1}]})", R"({"choices":[{"delta":{"content":1}}]})",
        R"({"usage":{"prompt_tokens":"x","completion_tokens":-5}})", R"({"error":[]})",
        R"({"type":7})", R"({"type":"message_start"})", R"({"type":"message_start","message":1})",
        R"({"type":"content_block_delta","delta":[]})", R"({"type":"message_delta","usage":[]})",
        R"({"usage":{"prompt_tokens":1e300}})"}) {
    for (const char* spec : {"openai:m", "anthropic:m"}) {
      EXPECT_FALSE(ask(spec, stream({json})));
      EXPECT_FALSE(ask(spec, {200, {{"Content-Type", "application/json"}}, {json}}));
      EXPECT_FALSE(ask(spec, {400, {}, {json}}));
    }
  }
}

TEST_F(Protocols, ACallerCanStopInTheMiddle) {
  http.add(chat("stop"));
  const Outcome outcome = bare("openai:m")->complete(
      question("Hello?"), [](const Delta&) { return false; }, {});
  EXPECT_EQ(outcome->finish, FinishReason::stopped_by_us);
  EXPECT_EQ(outcome->text, "Hi");
  EXPECT_TRUE(outcome->usage.estimated);
}

TEST_F(Protocols, OptionsThatAServerRefusesAreLeftOutAndThatIsRemembered) {
  const auto provider = bare("openai:m");
  CompletionRequest request = question("Hello?");
  request.temperature = 0.5;
  const auto refuse = [&](const std::string& message) {
    http.add({400, {}, {R"({"error":{"message":")" + message + "\"}}"}});
  };
  refuse("Unsupported value: 'temperature' does not support 0.5 with this model.");
  refuse("unknown field 'max_completion_tokens'");
  refuse("stream_options is not supported");
  http.add(chat("stop"));
  EXPECT_TRUE(provider->complete(request, {}, {}));
  EXPECT_EQ(http.requests().size(), 4U);
  EXPECT_FALSE(sent().contains("temperature"));
  EXPECT_FALSE(sent().contains("stream_options"));
  EXPECT_TRUE(sent().contains("max_tokens"));
  http.add(chat("stop"));
  EXPECT_TRUE(provider->complete(request, {}, {}));
  EXPECT_EQ(http.requests().size(), 5U);
  for (int i = 0; i < 3; ++i) refuse("Unknown option: max_completion_tokens, max_tokens");
  EXPECT_EQ(provider->complete(request, {}, {}).error().kind, FailureKind::refused);
  EXPECT_EQ(http.requests().size(), 6U);  // changed once already
}

TEST_F(Protocols, AnthropicLeavesOutATemperatureThatIsRefused) {
  CompletionRequest request = question("Hello?");
  request.temperature = 0.5;
  http.add({400, {}, {R"({"error":{"message":"temperature is not supported"}})"}});
  http.add(stream({R"({"type":"message_delta","delta":{"stop_reason":"end_turn"}})",
                   R"({"type":"message_stop"})"}));
  EXPECT_TRUE(bare("anthropic:m")->complete(request, {}, {}));
  EXPECT_FALSE(sent().contains("temperature"));
}

TEST_F(Protocols, CarryWhatTheEndpointSaysAboutWaiting) {
  EXPECT_EQ(ask("openai:m", {429, {{"Retry-After", "7"}}}).error().retry_after->count(), 7000);
  os::FakeReply tired = chat("stop");
  tired.headers.push_back({"x-ratelimit-remaining-requests", "0"});
  tired.headers.push_back({"x-ratelimit-reset-requests", "3s"});
  EXPECT_EQ(ask("openai:m", tired)->pause->count(), 3000);
}

TEST_F(Protocols, NoTextOfOthersBringsAKeyIn) {
  const Outcome echoed =
      ask("openai:m", {401, {}, {R"({"error":{"message":"Incorrect key: )" + kSentKey + "\"}}"}});
  EXPECT_EQ(echoed.error().message,
            "openai:m answered 401: Incorrect key: [key]; check OPENAI_API_KEY");
  const std::string half = kSentKey.substr(0, 9), rest = kSentKey.substr(9);
  const Outcome answered =
      ask("openai:m", stream({R"({"choices":[{"delta":{"content":")" + half + "\"}}]}",
                              R"({"choices":[{"delta":{"content":")" + rest + "\"}}]}"}));
  EXPECT_EQ(answered.error().kind, FailureKind::malformed);
  EXPECT_EQ(answered.error().message.find(half), std::string::npos);
}

TEST(Providers, AreOpenedBySpec) {
  Bench bench;
  EXPECT_EQ(open_provider("gpt", bench.context()).error().message,
            "'gpt' names no model; write one of anthropic:NAME, exec:COMMAND, mailbox:DIR, "
            "openai:NAME, replay:FILE");
  EXPECT_FALSE(open_provider("openai:", bench.context()));
  EXPECT_EQ(open_provider("openai:m", bench.context()).error().message,
            "OPENAI_API_KEY is not set; export it, put it into .env, or name a server of your own "
            "in OPENAI_BASE_URL");
  EXPECT_EQ(open_provider("anthropic:m", bench.context()).error().message,
            "ANTHROPIC_API_KEY is not set; export it or put it into .env");
  Bench local({{"OPENAI_BASE_URL", "http://localhost:11434"},
               {"ANTHROPIC_BASE_URL", "http://localhost:1/v1/"}});
  EXPECT_EQ(open_provider("openai:a/b:7b", local.context()).value()->id(), "openai:a/b:7b");
  (void)local.bare("anthropic:m")->complete(question("?"), {}, {});
  EXPECT_EQ(local.http.requests().back().url, "http://localhost:1/v1/messages");
}

TEST(Providers, TakeABaseUrlAsPeopleWriteIt) {
  constexpr const char* kChat = "/chat/completions";
  for (const char* base : {"http://h:8000", "http://h:8000/", "http://h:8000/v1",
                           "http://h:8000/v1/", "http://h:8000/v1/chat/completions",
                           "http://h:8000/v1/embeddings"}) {
    EXPECT_EQ(openai_url(base, kChat).value(), "http://h:8000/v1/chat/completions");
    EXPECT_EQ(openai_url(base, "/embeddings").value(), "http://h:8000/v1/embeddings");
  }
  EXPECT_EQ(openai_url("https://openrouter.ai/api/v1", kChat).value(),
            "https://openrouter.ai/api/v1/chat/completions");
  EXPECT_EQ(openai_url("https://h/v1beta/openai", kChat).value(),
            "https://h/v1beta/openai/chat/completions");
  EXPECT_EQ(openai_url("https://vllm.example.com", kChat).value(),
            "https://vllm.example.com/v1/chat/completions");
  EXPECT_FALSE(openai_url("localhost:8000", kChat));
}

TEST(Prompt, IsNamedByItsTextAndReadAsOne) {
  CompletionRequest request = question("b", "a");
  const Digest digest = prompt_digest(request);
  request.output_tokens_max = 7;
  EXPECT_EQ(prompt_digest(request), digest);
  EXPECT_NE(prompt_digest(question("a", "b")), digest);
  EXPECT_NE(prompt_digest(question("ab")), digest);
  EXPECT_EQ(plain_text(request), "a\n\nb\n");
  request.messages.push_back({Role::assistant, "c"});
  EXPECT_EQ(plain_text(request), "a\n\n# user\n\nb\n\n# assistant\n\nc\n");
}

}  // namespace
}  // namespace ke::llm
