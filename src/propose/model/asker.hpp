// SPDX-License-Identifier: Apache-2.0
//
// Asks language models on worker threads and reads their answers while they are written.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>

#include "llm/prices.hpp"
#include "os/clock.hpp"
#include "propose/model/models.hpp"

namespace ke {

struct AskedModel {
  std::unique_ptr<llm::Provider> provider;  // with its budget around it
  std::optional<llm::Price> price;          // absent: unknown, or free
};

class Asker final : public Models {
 public:
  // At most `calls` calls at a time; further ones wait. `events`: what the providers emit to.
  Asker(std::vector<AskedModel> models, int calls, os::Clock& clock, EventQueue& events);
  ~Asker() override;

  std::vector<ModelInfo> list() const override;
  bool available(int model) const override;
  void ask(PromptId prompt, int model, const llm::CompletionRequest& request,
           const llm::AnswerContract& contract) override;
  std::optional<ModelEvent> poll() override;
  Result<void> wait(Milliseconds most) override;
  void drain(EventSink& to) override { events_.drain(to); }
  void end() override;

 private:
  struct Job {
    PromptId prompt;
    int model = 0;
    llm::CompletionRequest request;
    llm::AnswerContract contract;
  };
  struct Held {
    ModelEvent event;
    Nanoseconds ripe{0};  // not before
  };

  void work(const std::stop_token& stop);
  void run(const Job& job, const std::stop_token& stop);
  void hold(ModelEvent event);

  std::vector<AskedModel> models_;
  os::Clock& clock_;
  EventQueue& events_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable_any changed_;
  std::deque<Job> jobs_;
  std::deque<Held> held_;
  std::vector<std::jthread> workers_;  // last: they use everything above
};

}  // namespace ke
