// SPDX-License-Identifier: Apache-2.0
#include "llm/retry.hpp"

#include <gtest/gtest.h>

#include "base/json.hpp"
#include "llm/breaker.hpp"
#include "llm/fake_provider.hpp"

namespace ke::llm {
namespace {

using namespace std::chrono_literals;
using enum FailureKind;

struct Events final : EventSink {
  void emit(std::string_view name, const Json& fields) override {
    names.emplace_back(name);
    last = fields;
  }
  std::vector<std::string> names;
  Json last;
};

struct Fixture : ::testing::Test {
  FakeProvider* inner = nullptr;
  os::FakeClock clock;
  Events events;
  std::unique_ptr<Provider> provider;

  void retrying(std::deque<Outcome> script, const RetryOptions& options = {}, uint64_t seed = 1) {
    auto fake = std::make_unique<FakeProvider>(std::move(script));
    inner = fake.get();
    provider = with_retry(std::move(fake), clock, Rng(seed), events, options);
  }
  void breaking(std::deque<Outcome> script) {
    auto fake = std::make_unique<FakeProvider>(std::move(script));
    inner = fake.get();
    provider = with_breaker(std::move(fake), clock, events);
  }
  Outcome ask(const OnDelta& on_delta = {}, std::stop_token stop = {}) {
    return provider->complete({{}, {{Role::user, "hello"}}}, on_delta, stop);
  }
};

struct Retry : Fixture {};
struct Breaker : Fixture {};

Failure failure(FailureKind kind, std::optional<Milliseconds> wait = {}) {
  return Failure{kind, "as scripted", wait};
}

TEST_F(Retry, TriesAgainWhatPassesAndNumbersTheAttempts) {
  retrying({failure(unreachable), failure(overloaded), fake_answer("done")});
  int attempt = -1;
  const Outcome outcome = ask([&](const Delta& delta) {
    attempt = delta.attempt;
    return true;
  });
  EXPECT_EQ(outcome->text, "done");
  EXPECT_EQ(inner->calls, 3);
  EXPECT_EQ(attempt, 2);
  EXPECT_GE(clock.now(), 1'500ms);  // at least half of 1 s and half of 2 s
  EXPECT_LE(clock.now(), 3'000ms);
  EXPECT_EQ(events.names, (std::vector<std::string>{"llm.retry", "llm.retry"}));
  EXPECT_EQ(events.last["kind"], "overloaded");
}

TEST_F(Retry, DoesNotRepeatWhatCannotChange) {
  for (const FailureKind kind : {unauthorized, context_overflow, refused, budget, diverged}) {
    retrying({failure(kind)});
    EXPECT_EQ(ask().error().kind, kind);
    EXPECT_EQ(inner->calls, 1);
  }
  EXPECT_EQ(clock.now(), 0ns);
}

TEST_F(Retry, GivesUpAfterSoManyAttempts) {
  retrying({failure(timed_out)}, {.attempts_max = 3});
  EXPECT_EQ(ask().error().kind, timed_out);
  EXPECT_EQ(inner->calls, 3);
}

TEST_F(Retry, WaitsAsLongAsTheEndpointAsksAndNoLongerThanSensible) {
  retrying({failure(rate_limited, 42s), fake_answer("done")});
  EXPECT_TRUE(ask());
  EXPECT_EQ(clock.now(), 42s);
  retrying({failure(rate_limited, 3600s)});
  const Outcome outcome = ask();
  EXPECT_EQ(inner->calls, 1);
  EXPECT_EQ(outcome.error().message, "as scripted; it asks to wait 3600 s, which is too long");
}

TEST_F(Retry, KeepsThePauseThatASuccessAsksFor) {
  Outcome tired = fake_answer("done");
  tired->pause = 5s;
  retrying({tired, fake_answer("again")});
  EXPECT_TRUE(ask());
  EXPECT_EQ(clock.now(), 0ns);
  EXPECT_TRUE(ask());
  EXPECT_EQ(clock.now(), 5s);
}

TEST_F(Retry, SpreadsTheDelaysOfDifferentCallers) {
  std::vector<int64_t> ends;
  for (const uint64_t seed : {1U, 2U, 3U}) {
    const Nanoseconds start = clock.now();
    retrying({failure(overloaded), fake_answer("done")}, {}, seed);
    EXPECT_TRUE(ask());
    ends.push_back((clock.now() - start).count());
  }
  EXPECT_NE(ends[0], ends[1]);
  EXPECT_NE(ends[1], ends[2]);
}

TEST_F(Retry, AddsUpWhatFailedAttemptsCost) {
  Failure cut = failure(unreachable);
  cut.usage.output_tokens = 7;
  Usage usage;
  usage.output_tokens = 10;
  retrying({cut, fake_answer("done", usage)});
  EXPECT_EQ(ask()->usage.output_tokens, 17);
  retrying({cut}, {.attempts_max = 3});
  EXPECT_EQ(ask().error().usage.output_tokens, 21);
}

TEST_F(Retry, AStopEndsTheWait) {
  retrying({failure(overloaded)});
  std::stop_source source;
  source.request_stop();
  const Outcome outcome = ask({}, source.get_token());
  EXPECT_EQ(outcome->finish, FinishReason::stopped_by_us);
  EXPECT_LE(inner->calls, 1);
}

TEST_F(Breaker, SaysOnceThatAnEndpointIsDeadAndOnceThatItIsBack) {
  breaking({failure(unreachable), failure(unreachable), failure(unreachable), fake_answer("hi")});
  EXPECT_FALSE(ask());
  EXPECT_TRUE(provider->available());
  EXPECT_FALSE(ask());
  EXPECT_FALSE(provider->available());
  EXPECT_EQ(inner->calls, 2);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(ask().error().kind, unreachable);
  EXPECT_EQ(inner->calls, 2);  // not asked
  EXPECT_EQ(ask().error().message, "fake:script is not answering; the next try is in 30 s");
  clock.advance(30s);
  EXPECT_TRUE(provider->available());
  EXPECT_FALSE(ask());  // still dead: now for a minute
  clock.advance(30s);
  EXPECT_FALSE(provider->available());
  EXPECT_EQ(events.names, (std::vector<std::string>{"llm.dead"}));
  clock.advance(30s);
  EXPECT_TRUE(ask());
  EXPECT_TRUE(provider->available());
  EXPECT_EQ(events.names, (std::vector<std::string>{"llm.dead", "llm.alive"}));
}

TEST_F(Breaker, AWrongKeyIsBelievedAtOnce) {
  breaking({failure(unauthorized)});
  EXPECT_FALSE(ask());
  EXPECT_FALSE(provider->available());
}

TEST_F(Breaker, WhatTheEndpointThinksOfACallDoesNotKillIt) {
  breaking({failure(context_overflow)});
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(ask());
  EXPECT_TRUE(provider->available());
  breaking({failure(unreachable), fake_answer("hi"), failure(unreachable), fake_answer("hi")});
  for (int i = 0; i < 4; ++i) (void)ask();  // never two in a row
  EXPECT_TRUE(provider->available());
  EXPECT_TRUE(events.names.empty());
}

}  // namespace
}  // namespace ke::llm
