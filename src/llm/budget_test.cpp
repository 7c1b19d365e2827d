// SPDX-License-Identifier: Apache-2.0
#include "llm/budget.hpp"

#include <gtest/gtest.h>

#include <thread>

#include "base/json.hpp"
#include "llm/fake_provider.hpp"

namespace ke::llm {
namespace {

using namespace std::chrono_literals;

Result<PriceTable> table(const std::string& text) {
  return PriceTable::decode(parse_json(text).value());
}

TEST(Prices, PriceEachKindOfToken) {
  const PriceTable prices = table(R"({"models": {
      "openai:big": {"input": 2, "cached_input": 0.5, "output": 8},
      "anthropic:*": {"input": 1, "output": 1},
      "anthropic:large-*": {"input": 3, "cached_input": 0.3, "cache_write": 3.75, "output": 15}}})")
                                .value();
  Usage usage;
  usage.input_tokens = 1'000'000;
  usage.cached_input_tokens = 400'000;
  usage.output_tokens = 500'000;
  EXPECT_DOUBLE_EQ(prices.find("openai:big")->cost_usd(usage), 0.6 * 2 + 0.4 * 0.5 + 0.5 * 8);
  usage.cache_write_tokens = 100'000;
  EXPECT_DOUBLE_EQ(prices.find("anthropic:large-1")->cost_usd(usage),
                   0.5 * 3 + 0.4 * 0.3 + 0.1 * 3.75 + 0.5 * 15);
  EXPECT_DOUBLE_EQ(prices.find("anthropic:small")->input, 1);
  EXPECT_FALSE(prices.find("openai:bigger"));
  EXPECT_FALSE(prices.find("anthropic"));
}

TEST(Prices, RefuseABadTableBySayingWhere) {
  EXPECT_EQ(table("{}").error().message, "it lacks the object 'models'");
  EXPECT_EQ(table(R"({"models": {"a": {"input": 1}}})").error().message,
            "the price of a lacks the field 'output'");
  EXPECT_EQ(table(R"({"models": {"a": {"input": 1, "output": 1, "outptu": 1}}})").error().message,
            "the price of a has an unknown field 'outptu'");
  EXPECT_EQ(table(R"({"models": {"a": {"input": -1, "output": 1}}})").error().message,
            "the price of a is negative");
  EXPECT_FALSE(PriceTable::load("/no/such/prices.json"));
}

TEST(LlmBudget, EachLimitForbidsTheCallThatWouldPassIt) {
  struct Case {
    BudgetLimits limits;
    std::string message;
  };
  const std::string head = "the budget forbids a further call: ";
  const Case cases[] = {
      {{.calls = 1}, head + "all 1 calls are made"},
      {{.tokens = 150}, head + "of 150 tokens 50 are left, and it may need 100"},
      {{.usd = 0.15}, head + "of 0.1500 USD 0.0500 are left, and it may cost 0.1000"},
      {{.time = 3s}, head + "3 of 3 s of waiting are used up"}};
  for (const Case& c : cases) {
    SCOPED_TRACE(c.message);
    LlmBudget budget(c.limits);
    const Spending most{1, 100, 0.1, 0ns};
    EXPECT_FALSE(budget.take(most));
    budget.settle(most, {1, 100, 0.1, 3s});
    const std::optional<Failure> refused = budget.take(most);
    ASSERT_TRUE(refused);
    EXPECT_EQ(refused->kind, FailureKind::budget);
    EXPECT_EQ(refused->message, c.message);
    EXPECT_EQ(budget.spent().calls, 1);
  }
}

TEST(LlmBudget, CallsInFlightCountWithTheMostTheyCanCost) {
  LlmBudget budget({.tokens = 250});
  const Spending most{1, 100, 0, 0ns};
  EXPECT_FALSE(budget.take(most));
  EXPECT_FALSE(budget.take(most));
  EXPECT_TRUE(budget.take(most));
  EXPECT_FALSE(budget.exceeded());  // nothing is spent yet
  budget.settle(most, {1, 20, 0, 0ns});
  EXPECT_FALSE(budget.take(most));
  EXPECT_EQ(budget.spent().tokens, 20);
}

TEST(LlmBudget, IsExceededWhenALimitIsReachedAlsoAfterAResume) {
  LlmBudget budget({.usd = 1.0}, {5, 1000, 1.0, 1s});
  EXPECT_TRUE(budget.exceeded());
  EXPECT_TRUE(LlmBudget({.calls = 2}, {2, 0, 0, 0ns}).exceeded());
  EXPECT_TRUE(LlmBudget({.tokens = 10}, {0, 10, 0, 0ns}).exceeded());
  EXPECT_FALSE(LlmBudget({}, {9, 9, 9, 9s}).exceeded());
}

TEST(LlmBudget, TenThreadsDoNotPassIt) {
  LlmBudget budget({.tokens = 1000});
  std::atomic<int> admitted{0};
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 10; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < 50; ++i) {
          const Spending most{1, 10, 0, 0ns};
          if (budget.take(most)) continue;
          budget.settle(most, most);
          ++admitted;
        }
      });
    }
  }
  EXPECT_EQ(budget.spent().tokens, 1000);
  EXPECT_EQ(admitted, 100);
}

TEST(BudgetedProvider, PaysForAnswersAndForFailures) {
  Usage usage;
  usage.input_tokens = 1000;
  usage.output_tokens = 100;
  Failure failure{FailureKind::unreachable, "cut"};
  failure.usage = usage;
  LlmBudget budget({.usd = 1.0});
  auto fake = std::make_unique<FakeProvider>(std::deque<Outcome>{fake_answer("a", usage), failure});
  const auto provider = with_budget(std::move(fake), budget, Price{10, 10, 10, 20});
  CompletionRequest request{{}, {{Role::user, "hello"}}, 1000};
  EXPECT_TRUE(provider->complete(request, {}, {}));
  EXPECT_NEAR(budget.spent().usd, 0.012, 1e-12);
  EXPECT_FALSE(provider->complete(request, {}, {}));
  EXPECT_NEAR(budget.spent().usd, 0.024, 1e-12);
  EXPECT_EQ(budget.spent().tokens, 2200);
  request.output_tokens_max = 1'000'000;  // could cost 20 dollars
  EXPECT_EQ(provider->complete(request, {}, {}).error().kind, FailureKind::budget);
  EXPECT_EQ(budget.spent().calls, 2);
}

TEST(Spending, SurvivesJson) {
  const Spending spending = decode_spending(encode(Spending{3, 400, 0.25, 7s})).value();
  EXPECT_EQ(spending.calls, 3);
  EXPECT_EQ(spending.tokens, 400);
  EXPECT_EQ(spending.usd, 0.25);
  EXPECT_EQ(spending.time, 7s);
}

}  // namespace
}  // namespace ke::llm
