// SPDX-License-Identifier: Apache-2.0
//
// Models in the simulated world: prompts are lines of genes, and a scripted provider answers them.
#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "fakes.hpp"
#include "propose/model/asker.hpp"
#include "propose/model/fake_ground.hpp"

namespace ke::sim {

// The prompt tells how many nodes there are, and the genes of the parents. Tools give another text
// every time, unless a recording says what they gave.
class GenesTasks : public ModelTasks {
 public:
  explicit GenesTasks(GroundSource* recorded = nullptr);

  Result<std::optional<ModelTask>> make(const ProposalContext& context, ModelStyle style,
                                        std::optional<int64_t> tokens_max) const override;
  Result<ModelProposal> proposal(const ProposalContext& context, const ModelTask& task,
                                 const llm::AnswerResult& answer) const override;
  llm::CompletionRequest follow_up(const ModelTask& task, std::string_view answer,
                                   std::string_view fault) const override;
  Result<ToolUse> use(const llm::ToolCall& call) const override;
  llm::CompletionRequest go_on(const ModelTask& task, std::string_view answer, const ToolUse& use,
                               int left) const override;
  // Sub-agents are asked as in use, about a small library.
  Result<std::optional<ModelTask>> advise(const ProposalContext& context, Agent agent,
                                          ModelStyle style,
                                          std::optional<int64_t> tokens_max) const override;
  Result<Found> look_up(const llm::ToolCall& search) const override;

 private:
  PromptOptions options() const;

  GroundSource* recorded_;
  mutable testing_support::FakeGround library_;
  mutable int64_t uses_ = 0;
};

struct Call {
  int64_t number = 0;  // from 1
  const llm::CompletionRequest& request;
  const llm::OnDelta& on_delta;
  const std::stop_token& stop;
};

class ScriptedProvider final : public llm::Provider {
 public:
  using Script = std::function<llm::Outcome(const Call& call)>;
  ScriptedProvider(std::string id, Script script)
      : id_(std::move(id)), script_(std::move(script)) {}

  std::string id() const override { return id_; }
  llm::Outcome complete(const llm::CompletionRequest& request, const llm::OnDelta& on_delta,
                        std::stop_token stop) override;
  std::vector<llm::CompletionRequest> requests() const;

 private:
  std::string id_;
  Script script_;
  mutable std::mutex mutex_;
  std::vector<llm::CompletionRequest> requests_;
};

llm::Outcome say(std::string text);
std::string block(const Genes& genes);
// An answer that asks for a tool: a search, or whether these genes compile.
llm::Outcome ask_search();
llm::Outcome ask_compile(const Genes& genes);
// Answers of sub-agents, by the question: nothing when a kernel is asked for.
std::optional<Agent> agent_asked(const Call& call);
llm::Outcome diagnose_as(const std::string& directive);
llm::Outcome choose(const std::string& path);
llm::Outcome search_for(const std::string& words);
// A good answer to whoever is asked: a diagnosis, a search, a choice of what it found, a kernel.
llm::Outcome advised_answer_of(const Call& call);
// Another kernel for every call, mostly a good one.
llm::Outcome answer_of(const Call& call);

// A World with one model "fake:m" and the proposers genes and llm.
struct ModelWorld {
  ModelWorld(Store& at, ScriptedProvider::Script script, Faults faults = {});
  ModelWorld(Store& at, std::vector<AskedModel> models, Faults faults = {});

  SearchDependencies dependencies();

  World world;
  GenesTasks tasks;
  os::SystemClock clock;  // of the asker: its threads wait in earnest
  EventQueue events;
  ScriptedProvider* provider = nullptr;  // of the first constructor
  std::unique_ptr<Asker> asker;
};

SearchOptions model_options(int64_t steps, std::vector<std::string> proposers = {"genes", "llm"});

}  // namespace ke::sim
