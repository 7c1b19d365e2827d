// SPDX-License-Identifier: Apache-2.0
//
// The language models of a run, as the engine sees them: it asks, goes on, and hears of answers
// when it next looks. The real ones are asked by an Asker (model/asker.hpp); a replay answers from
// a journal, and says what may happen next.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/events.hpp"
#include "base/ids.hpp"
#include "base/result.hpp"
#include "domain/experience.hpp"
#include "llm/answer.hpp"
#include "llm/provider.hpp"

namespace ke {

struct ModelEvent {
  PromptId prompt;
  // A complete block, while the model goes on writing: `outcome` is what was written so far, and
  // another event follows.
  bool early = false;
  llm::Outcome outcome = llm::Failure{};
  double usd = 0;
};

struct ModelInfo {
  std::string name;     // "openai:NAME"
  bool priced = false;  // its price is known
};

class Models {
 public:
  virtual ~Models() = default;

  virtual std::vector<ModelInfo> list() const = 0;
  // False while a dead endpoint waits for its next try, and when the budget is used up.
  virtual bool available(int model) const = 0;

  virtual void ask(PromptId prompt, int model, const llm::CompletionRequest& request,
                   const llm::AnswerContract& contract) = 0;
  // The next event that has come in; never waits.
  virtual std::optional<ModelEvent> poll() = 0;
  // Until something has come in, at most so long. An Error when nothing will.
  virtual Result<void> wait(Milliseconds most) = 0;
  // Passes on what the providers told of meanwhile (retries, dead endpoints).
  virtual void drain(EventSink& to) = 0;
  // Ends the calls in flight and waits for them. Answers that were complete can still be polled.
  virtual void end() = 0;
};

// What decides, in a replay, whether the engine may go on to insert a row of that kind. `special`
// is a node that a model wrote, or a prompt that follows another.
class Pace {
 public:
  virtual ~Pace() = default;
  virtual bool allows(JournalKind next, bool special) const = 0;
  // What the next prompt follows; 0 when it is a new one, or no prompt is next.
  virtual PromptId followed() const = 0;
  // Nodes that were found spent while the run had at most so many nodes. Looking for an idea in
  // vain leaves nothing else behind, so the journal does not say when it was done.
  virtual std::vector<NodeId> spent_by(int64_t step) const = 0;
};

}  // namespace ke
