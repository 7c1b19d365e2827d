// SPDX-License-Identifier: Apache-2.0
//
// The language models of a run, ready to be asked: providers opened, with budget and prices around
// them.
#pragma once

#include <filesystem>
#include <memory>

#include "base/events.hpp"
#include "base/result.hpp"
#include "domain/limits.hpp"
#include "knowledge/vectors.hpp"
#include "llm/budget.hpp"
#include "llm/embedder.hpp"
#include "llm/environment.hpp"
#include "os/clock.hpp"
#include "os/http.hpp"
#include "propose/model/asker.hpp"
#include "propose/model/tasks.hpp"
#include "search/search.hpp"

namespace ke::app {

class ModelSet {
 public:
  // `spent`: by the run before it was resumed. Errc::invalid with a sentence for a model, a key or
  // a price that is missing or wrong.
  static Result<std::unique_ptr<ModelSet>> open(const ModelOptions& options,
                                                const ModelSpending& spent = {});

  // For the documents of prompts, paid from the run's budget; null when no embeddings were named.
  // Owned by what is drawn on.
  std::unique_ptr<knowledge::Vectorizer> take_vectorizer(const std::filesystem::path& workspace);
  // Where prompts take profiles and documents from. To be called before tasks().
  void draw_on(std::unique_ptr<GroundSource> ground);

  Models& models() { return *asker_; }
  const ModelTasks& tasks() const { return *tasks_; }

 private:
  ModelSet(const ModelOptions& options, const ModelSpending& spent);

  os::SystemClock clock_;
  Limits limits_;
  EventQueue events_;
  llm::Environment environment_;
  std::unique_ptr<os::HttpClient> http_;
  llm::LlmBudget budget_;
  std::unique_ptr<llm::Embedder> embedder_;
  std::unique_ptr<GroundSource> ground_;
  std::unique_ptr<ModelTasks> tasks_;
  std::unique_ptr<Asker> asker_;  // last: its threads use everything above
};

}  // namespace ke::app
