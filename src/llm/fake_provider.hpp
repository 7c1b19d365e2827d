// SPDX-License-Identifier: Apache-2.0
//
// A Provider that answers from a script, in order, and counts how often it was asked; when the
// script is used up, it repeats its last line.
#pragma once

#include <deque>
#include <utility>

#include "llm/provider.hpp"

namespace ke::llm {

class FakeProvider final : public Provider {
 public:
  explicit FakeProvider(std::deque<Outcome> script) : script_(std::move(script)) {}

  std::string id() const override { return "fake:script"; }

  Outcome complete(const CompletionRequest&, const OnDelta& on_delta, std::stop_token) override {
    ++calls;
    Outcome outcome = script_.front();
    if (script_.size() > 1) script_.pop_front();
    if (outcome && on_delta && !on_delta(Delta{outcome->text})) {
      outcome->finish = FinishReason::stopped_by_us;
    }
    return outcome;
  }

  int calls = 0;

 private:
  std::deque<Outcome> script_;
};

inline Outcome fake_answer(std::string text, Usage usage = {}) {
  Completion completion;
  completion.text = std::move(text);
  completion.usage = usage;
  completion.provider = "fake:script";
  return completion;
}

}  // namespace ke::llm
