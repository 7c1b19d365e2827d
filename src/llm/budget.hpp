// SPDX-License-Identifier: Apache-2.0
//
// What a run may spend on models. Before a call the most it can cost is set aside, afterwards what
// it did cost takes its place; so with any number of calls in flight a limit is passed only by as
// much as an estimate was wrong. Safe to call from many threads.
#pragma once

#include <mutex>
#include <optional>

#include "base/json_fwd.hpp"
#include "llm/prices.hpp"
#include "llm/provider.hpp"

namespace ke::llm {

struct Spending {
  int64_t calls = 0;
  int64_t tokens = 0;  // input (cached or not) and output
  double usd = 0;
  Nanoseconds time{0};  // waiting for answers, added up over calls
};
Json encode(const Spending& spending);
Result<Spending> decode_spending(const Json& json);

struct BudgetLimits {  // absent: no limit
  std::optional<int64_t> calls;
  std::optional<int64_t> tokens;
  std::optional<double> usd;
  std::optional<Nanoseconds> time;
};

class LlmBudget {
 public:
  // `spent`: by the run before it was resumed.
  explicit LlmBudget(BudgetLimits limits, Spending spent = {}) : limits_(limits), spent_(spent) {}

  // Sets aside one call that costs at most so much. A Failure (budget) that says which limit would
  // be passed; then nothing was set aside.
  std::optional<Failure> take(const Spending& most);
  // The call is over: gives back what was set aside for it and notes what it cost.
  void settle(const Spending& most, const Spending& actual);

  bool exceeded() const;  // a limit is reached: no further call will be admitted
  Spending spent() const;

 private:
  mutable std::mutex mutex_;
  BudgetLimits limits_;
  Spending spent_, reserved_;
};

// Every call of `inner` is paid from `budget`, which outlives it. `price` absent: calls cost no
// money (a local model). `counted`: as calls too; embeddings are paid in tokens and money alone.
std::unique_ptr<Provider> with_budget(std::unique_ptr<Provider> inner, LlmBudget& budget,
                                      std::optional<Price> price, bool counted = true);

}  // namespace ke::llm
