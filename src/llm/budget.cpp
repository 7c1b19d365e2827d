// SPDX-License-Identifier: Apache-2.0
#include "llm/budget.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/json.hpp"

namespace ke::llm {

namespace {

Spending sum(const Spending& a, const Spending& b) {
  return {a.calls + b.calls, a.tokens + b.tokens, a.usd + b.usd, a.time + b.time};
}

Spending difference(const Spending& a, const Spending& b) {
  return {a.calls - b.calls, a.tokens - b.tokens, a.usd - b.usd, a.time - b.time};
}

Failure over(std::string what) {
  return Failure{FailureKind::budget, "the budget forbids a further call: " + std::move(what)};
}

double seconds(Nanoseconds time) { return Seconds(time).count(); }

// Why a call that costs at most `most` may not be made.
std::optional<Failure> objection(const BudgetLimits& limits, const Spending& committed,
                                 const Spending& most) {
  if (limits.calls && committed.calls + most.calls > *limits.calls) {
    return over(fmt::format("all {} calls are made", *limits.calls));
  }
  if (limits.tokens && committed.tokens + most.tokens > *limits.tokens) {
    return over(fmt::format("of {} tokens {} are left, and it may need {}", *limits.tokens,
                            std::max<int64_t>(*limits.tokens - committed.tokens, 0), most.tokens));
  }
  // Sums of many small amounts carry rounding; a limit is not missed for a billionth of a dollar.
  constexpr double kRounding = 1e-9;
  if (limits.usd && committed.usd + most.usd > *limits.usd + kRounding) {
    return over(fmt::format("of {:.4f} USD {:.4f} are left, and it may cost {:.4f}", *limits.usd,
                            std::max(*limits.usd - committed.usd, 0.0), most.usd));
  }
  if (limits.time && committed.time + most.time >= *limits.time) {
    return over(fmt::format("{:.0f} of {:.0f} s of waiting are used up", seconds(committed.time),
                            seconds(*limits.time)));
  }
  return std::nullopt;
}

// The most a call can cost: the whole prompt uncached and written to the cache, an answer of full
// length. Three bytes a token, since code has shorter tokens than prose.
Spending most_of(const CompletionRequest& request, const std::optional<Price>& price,
                 int64_t calls) {
  const int64_t bytes_of_tokens = 4;  // estimate_usage counts four bytes a token
  Usage usage = estimate_usage(request, {});
  usage.input_tokens = usage.input_tokens * bytes_of_tokens / 3 + 1;
  if (price && price->cache_write > price->input) usage.cache_write_tokens = usage.input_tokens;
  usage.output_tokens = request.output_tokens_max;
  return {calls, usage.input_tokens + usage.output_tokens, price ? price->cost_usd(usage) : 0.0,
          Nanoseconds(0)};
}

class BudgetedProvider final : public Provider {
 public:
  BudgetedProvider(std::unique_ptr<Provider> inner, LlmBudget& budget, std::optional<Price> price,
                   bool counted)
      : inner_(std::move(inner)), budget_(budget), price_(price), calls_(counted ? 1 : 0) {}

  std::string id() const override { return inner_->id(); }
  bool available() const override { return !budget_.exceeded() && inner_->available(); }

  Outcome complete(const CompletionRequest& request, const OnDelta& on_delta,
                   std::stop_token stop) override {
    const Spending most = most_of(request, price_, calls_);
    if (std::optional<Failure> refused = budget_.take(most)) return *refused;
    Outcome outcome = inner_->complete(request, on_delta, stop);
    const Usage& usage = outcome ? outcome->usage : outcome.error().usage;
    Spending actual{calls_, usage.input_tokens + usage.output_tokens,
                    price_ ? price_->cost_usd(usage) : 0.0, Nanoseconds(0)};
    if (outcome) actual.time = outcome->elapsed;
    budget_.settle(most, actual);
    return outcome;
  }

 private:
  std::unique_ptr<Provider> inner_;
  LlmBudget& budget_;
  std::optional<Price> price_;
  int64_t calls_;  // that one counts as
};

}  // namespace

Json encode(const Spending& spending) {
  return {{"calls", spending.calls},
          {"tokens", spending.tokens},
          {"usd", spending.usd},
          {"time_ns", spending.time.count()}};
}

Result<Spending> decode_spending(const Json& json) {
  Fields fields = TRY(Fields::of(json, "the spending"));
  Spending spending;
  spending.calls = TRY(fields.get<int64_t>("calls"));
  spending.tokens = TRY(fields.get<int64_t>("tokens"));
  spending.usd = TRY(fields.get<double>("usd"));
  spending.time = Nanoseconds(TRY(fields.get<int64_t>("time_ns")));
  TRY(fields.finish());
  return spending;
}

std::optional<Failure> LlmBudget::take(const Spending& most) {
  const std::lock_guard lock(mutex_);
  std::optional<Failure> refused = objection(limits_, sum(spent_, reserved_), most);
  if (!refused) reserved_ = sum(reserved_, most);
  return refused;
}

void LlmBudget::settle(const Spending& most, const Spending& actual) {
  const std::lock_guard lock(mutex_);
  reserved_ = difference(reserved_, most);
  spent_ = sum(spent_, actual);
}

bool LlmBudget::exceeded() const {
  const std::lock_guard lock(mutex_);
  return objection(limits_, spent_, Spending{1, 1, 0, Nanoseconds(0)}).has_value() ||
         (limits_.usd && spent_.usd >= *limits_.usd);
}

Spending LlmBudget::spent() const {
  const std::lock_guard lock(mutex_);
  return spent_;
}

std::unique_ptr<Provider> with_budget(std::unique_ptr<Provider> inner, LlmBudget& budget,
                                      std::optional<Price> price, bool counted) {
  return std::make_unique<BudgetedProvider>(std::move(inner), budget, price, counted);
}

}  // namespace ke::llm
