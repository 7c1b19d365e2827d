// SPDX-License-Identifier: Apache-2.0
//
// Both protocols end to end: provider, retry, breaker, HTTP client and server, with every fault.
#include <gtest/gtest.h>

#include "llm/answer.hpp"
#include "llm/breaker.hpp"
#include "llm/budget.hpp"
#include "llm/retry.hpp"
#include "llm/testing.hpp"
#include "test_server.hpp"

namespace ke::test {
namespace {

using namespace std::chrono_literals;
using namespace ke::llm;  // tidy: allow(using-namespace) because this tests that folder

// Waits in no time; what passes in the world does not move it.
struct ProvidersTest : ::testing::TestWithParam<const char*> {
  os::TemporaryDirectory folder = os::TemporaryDirectory::create().value();
  TestServer server{TestServer::Kind::plain, folder.path() / "asked.jsonl"};
  std::unique_ptr<os::HttpClient> http = os::make_http_client({}).value();
  os::FakeClock clock;
  Environment environment{{{"OPENAI_BASE_URL", server.url()},
                           {"OPENAI_API_KEY", "sk-test-0123456789"},
                           {"ANTHROPIC_BASE_URL", server.url()},
                           {"ANTHROPIC_API_KEY", "sk-test-0123456789"}}};
  Limits limits;
  KeptEvents events;

  ProviderContext context() { return {clock, *http, environment, limits, events, Rng(1)}; }
  std::unique_ptr<Provider> open(const std::string& model) {
    return open_provider(std::string(GetParam()) + ":" + model, context()).value();
  }
  Outcome ask(const std::string& model, const OnDelta& on_delta = {}) {
    return open(model)->complete(question("Write it.", "Rules."), on_delta, {});
  }
  size_t calls() const { return server.asked().size(); }
};

const std::string kSource = "int ke_launch() { return 0; }\n";

TEST_P(ProvidersTest, StreamsAnAnswerWithItsUsage) {
  for (const char* model : {"ok", "drip", "crlf", "whole"}) {
    SCOPED_TRACE(model);
    std::string heard;
    const Outcome outcome = ask(model, [&](const Delta& delta) {
      heard += delta.text;
      return true;
    });
    ASSERT_TRUE(outcome) << outcome.error().message;
    EXPECT_EQ(outcome->finish, FinishReason::stop);
    EXPECT_EQ(outcome->text, heard);
    EXPECT_EQ(parse_answer(outcome->text, outcome->finish, {})->source, kSource);
    EXPECT_EQ(outcome->usage.input_tokens, 1200);
    EXPECT_EQ(outcome->usage.output_tokens, 30);
    EXPECT_FALSE(outcome->usage.estimated);
    EXPECT_EQ(outcome->usage.cached_input_tokens, std::string(model) == "whole" ? 0 : 1000);
  }
}

TEST_P(ProvidersTest, ABlockCanBeTakenWhileTheModelStillWrites) {
  AnswerStream stream{AnswerContract{}};
  std::optional<Answer> early;
  const Outcome outcome = ask("ok", [&](const Delta& delta) {
    early = stream.feed(delta);
    return !early;
  });
  ASSERT_TRUE(early);
  EXPECT_EQ(early->source, kSource);
  EXPECT_EQ(outcome->finish, FinishReason::stopped_by_us);
  EXPECT_EQ(outcome->text.find("That is all"), std::string::npos);
}

TEST_P(ProvidersTest, RecognisesCutsAndRefusals) {
  EXPECT_EQ(ask("length")->finish, FinishReason::length);
  EXPECT_EQ(ask("refusal")->finish, FinishReason::refusal);
}

TEST_P(ProvidersTest, EveryFaultHasItsKindAndItsNumberOfTries) {
  using enum FailureKind;
  limits.llm_idle_max = 300ms;
  limits.llm_answer_bytes_max = 1_MiB;
  struct Case {
    const char* model;
    FailureKind kind;
    size_t tries;
  };
  for (const Case& c :
       {Case{"401", unauthorized, 1}, Case{"404", refused, 1}, Case{"413", context_overflow, 1},
        Case{"overflow", context_overflow, 1}, Case{"redirect", refused, 1},
        Case{"429", rate_limited, 5}, Case{"500", overloaded, 5}, Case{"529", overloaded, 5},
        Case{"html", overloaded, 5}, Case{"hang-up", unreachable, 5},
        Case{"not-http", unreachable, 5}, Case{"cut", unreachable, 5},
        Case{"bad-sse", malformed, 5}, Case{"stream-error", overloaded, 5},
        Case{"stall", timed_out, 5}, Case{"huge", unreachable, 5}}) {
    SCOPED_TRACE(c.model);
    const size_t before = calls();
    const Outcome outcome = ask(c.model);
    ASSERT_FALSE(outcome);
    EXPECT_EQ(outcome.error().kind, c.kind) << outcome.error().message;
    EXPECT_EQ(calls() - before, c.tries);
    if (c.kind == context_overflow && std::string(c.model) == "overflow") {
      EXPECT_EQ(outcome.error().context_tokens_max, 200'000);
    }
  }
}

TEST_P(ProvidersTest, RetriesUntilTheEndpointIsWellAgain) {
  const Outcome outcome = ask("flaky");
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_EQ(calls(), 3U);
  int last_attempt = 0;
  AnswerStream stream{AnswerContract{}};
  const Outcome whole = ask("cut-once", [&](const Delta& delta) {
    last_attempt = delta.attempt;
    (void)stream.feed(delta);
    return true;
  });
  ASSERT_TRUE(whole);
  EXPECT_EQ(last_attempt, 1);
  EXPECT_EQ(stream.finish(FinishReason::stop)->source, kSource);
  EXPECT_GT(whole->usage.input_tokens, 1200);  // the attempt that broke off is paid for
}

TEST_P(ProvidersTest, WaitsAsLongAsA429Asks) {
  const Nanoseconds start = clock.now();
  EXPECT_FALSE(ask("429"));
  EXPECT_EQ(clock.now() - start, 4 * 2s);  // five tries, two seconds between
}

TEST_P(ProvidersTest, AnEndpointThatDiesIsSaidOnceAndTriedAgainLater) {
  const auto provider = open("ok");
  const auto ask_again = [&] { return provider->complete(question("?"), {}, {}); };
  EXPECT_TRUE(ask_again());
  server.kill();
  EXPECT_FALSE(ask_again());
  EXPECT_TRUE(provider->available());
  EXPECT_FALSE(ask_again());
  EXPECT_FALSE(provider->available());
  for (int i = 0; i < 3; ++i) EXPECT_EQ(ask_again().error().kind, FailureKind::unreachable);
  size_t said = 0;
  for (size_t at = events.text.find("llm.dead"); at != std::string::npos;
       at = events.text.find("llm.dead", at + 1)) {
    ++said;
  }
  EXPECT_EQ(said, 1U);
  clock.advance(30s);
  EXPECT_TRUE(provider->available());
}

TEST_P(ProvidersTest, AMoneyBudgetEndsTheCalls) {
  LlmBudget budget({.usd = 0.05});
  const Price price{1, 0.1, 1.25, 10};  // a call may cost a cent, and costs a seventeenth of it
  const auto provider = with_budget(open("ok"), budget, price);
  CompletionRequest request = question("?");
  request.output_tokens_max = 1000;
  int answered = 0;
  Outcome last = Failure{};
  for (int i = 0; i < 1000; ++i) {
    last = provider->complete(request, {}, {});
    if (!last) break;
    ++answered;
  }
  EXPECT_EQ(last.error().kind, FailureKind::budget);
  EXPECT_GT(answered, 10);
  EXPECT_LE(budget.spent().usd, 0.05);
  EXPECT_EQ(static_cast<size_t>(answered), calls());  // the refused one was not sent
}

INSTANTIATE_TEST_SUITE_P(Protocols, ProvidersTest, ::testing::Values("openai", "anthropic"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace ke::test
