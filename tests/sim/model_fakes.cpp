// SPDX-License-Identifier: Apache-2.0
#include "model_fakes.hpp"

#include <fmt/format.h>

#include "base/json.hpp"
#include "propose/model/context_memory.hpp"
#include "propose/model/deep_reader.hpp"

namespace ke::sim {

GenesTasks::GenesTasks(GroundSource* recorded)
    : recorded_(recorded),
      library_({{"guidance/genes.md", "Genes", "Genes pay in pairs.\n", {}},
                {"guidance/alleles.md", "Alleles", "There are six of them.\n", {}},
                {"hidden/optimum.md", "The optimum", "It is planted.\n", {}}}) {}

PromptOptions GenesTasks::options() const {
  return {.ground = recorded_ != nullptr ? recorded_ : &library_};
}

Result<std::optional<ModelTask>> GenesTasks::advise(const ProposalContext& context, Agent agent,
                                                    ModelStyle style,
                                                    std::optional<int64_t> tokens_max) const {
  PromptOptions limited = options();
  limited.tokens_max = tokens_max.value_or(limited.tokens_max);
  return agent == Agent::context_memory ? make_memory_task(context, style, limited)
                                        : make_reader_task(context, style, limited);
}

Result<Found> GenesTasks::look_up(const llm::ToolCall& search) const {
  return options().ground->look_up(search);
}

Result<std::optional<ModelTask>> GenesTasks::make(const ProposalContext& context, ModelStyle style,
                                                  std::optional<int64_t> tokens_max) const {
  ModelTask task{.style = style, .kind = context.kind, .memory = context.memory};
  task.contract.entry = "genes";
  task.contract.tools = true;
  const size_t nodes = TRY(context.graph.nodes(context.run, false)).size();
  std::string text = fmt::format("{} of {} nodes", enum_name(context.kind), nodes);
  if (tokens_max) text += fmt::format(" in {} tokens", *tokens_max);
  for (const ParentView& parent : context.parents) {
    text += "\n" + parent.node.source;
    task.parents.push_back(parent.node.id);
  }
  if (context.advice != nullptr && context.advice->diagnosis) {
    task.ground.diagnosis = context.advice->diagnosis;
    text += "\nadvised: " + context.advice->diagnosis->directives.front();
  }
  if (context.advice != nullptr && context.advice->documents) {
    for (const ChosenDocument& chosen : *context.advice->documents) {
      auto document = TRY(options().ground->read(chosen.path));
      if (!document) continue;
      document->reason = chosen.reason;
      text += fmt::format("\n{}: {} ({})", document->path, document->text, document->reason);
      task.ground.documents.push_back(std::move(*document));
    }
  }
  task.request.stable = "Write genes.";
  task.request.messages = {{llm::Role::user, std::move(text)}};
  return std::optional<ModelTask>(std::move(task));
}

Result<ModelProposal> GenesTasks::proposal(const ProposalContext&, const ModelTask& task,
                                           const llm::AnswerResult& answer) const {
  if (!answer) return ModelProposal{{}, answer.error().sentence};
  if (answer->tool) return ModelProposal{{}, {}, answer->tool};
  std::string source = answer->source.substr(0, answer->source.find_last_not_of(" \n") + 1);
  return ModelProposal{
      Proposal{.source = std::move(source), .plan = {}, .parents = task.parents, .note = "told"},
      {}};
}

llm::CompletionRequest GenesTasks::follow_up(const ModelTask& task, std::string_view answer,
                                             std::string_view fault) const {
  llm::CompletionRequest request = task.request;
  request.messages.push_back({llm::Role::assistant, std::string(answer)});
  request.messages.push_back({llm::Role::user, std::string(fault)});
  return request;
}

Result<ToolUse> GenesTasks::use(const llm::ToolCall& call) const {
  ToolUse use;
  use.call = call;
  use.result = recorded_ != nullptr
                   ? TRY(recorded_->use(call))
                   : fmt::format("use {} of {}", ++uses_, enum_name(call.tool));
  return use;
}

llm::CompletionRequest GenesTasks::go_on(const ModelTask& task, std::string_view answer,
                                         const ToolUse& use, int left) const {
  llm::CompletionRequest request = task.request;
  request.messages.push_back({llm::Role::assistant, std::string(answer)});
  request.messages.push_back({llm::Role::user, fmt::format("{}, {} left", use.result, left)});
  return request;
}

llm::Outcome ScriptedProvider::complete(const llm::CompletionRequest& request,
                                        const llm::OnDelta& on_delta, std::stop_token stop) {
  int64_t number = 0;
  {
    const std::lock_guard lock(mutex_);
    requests_.push_back(request);
    number = static_cast<int64_t>(requests_.size());
  }
  return script_({number, request, on_delta, stop});
}

std::vector<llm::CompletionRequest> ScriptedProvider::requests() const {
  const std::lock_guard lock(mutex_);
  return requests_;
}

llm::Outcome say(std::string text) {
  llm::Completion completion;
  completion.text = std::move(text);
  completion.usage = {.input_tokens = 100, .output_tokens = 50};
  completion.elapsed = std::chrono::milliseconds(20);
  return completion;
}

std::string block(const Genes& genes) { return "Here:\n```\n" + print_genes(genes) + "\n```\n"; }

llm::Outcome ask_search() {
  return say("Let me look.\n```tool\n{\"tool\": \"search\", \"query\": \"genes\"}\n```\n");
}

llm::Outcome ask_compile(const Genes& genes) {
  return say("Let me try.\n```tool\n{\"tool\": \"compile\"}\n```\n" + block(genes));
}

llm::Outcome answer_of(const Call& call) {
  Rng rng = Rng(static_cast<uint64_t>(call.number)).split(llm::prompt_digest(call.request).hex());
  Genes genes = kPlanted;
  for (int& gene : genes) {
    if (rng.chance(0.4)) gene = static_cast<int>(rng.below(kAlleles));
  }
  return say(block(genes));
}

std::optional<Agent> agent_asked(const Call& call) {
  if (call.request.stable.find("You keep the memory") != std::string::npos) {
    return Agent::context_memory;
  }
  if (call.request.stable.find("You choose what is read") != std::string::npos) {
    return Agent::deep_search;
  }
  return std::nullopt;
}

llm::Outcome diagnose_as(const std::string& directive) {
  const Json json{{"bound", "latency"},
                  {"evidence", Json::array()},
                  {"tried", Json::array()},
                  {"directives", {directive}}};
  return say("```json\n" + dump_json(json) + "\n```\n");
}

llm::Outcome choose(const std::string& path) {
  const Json json{{"documents", {{{"path", path}, {"reason", "it says where"}}}}};
  return say("```json\n" + dump_json(json) + "\n```\n");
}

llm::Outcome search_for(const std::string& words) {
  const Json json{{"searches", {{{"string", words}}}}};
  return say("```json\n" + dump_json(json) + "\n```\n");
}

llm::Outcome advised_answer_of(const Call& call) {
  const std::optional<Agent> agent = agent_asked(call);
  if (agent == Agent::context_memory) return diagnose_as("Change a pair of genes.");
  if (agent != Agent::deep_search) return answer_of(call);
  return call.request.messages.size() == 1 ? search_for("planted") : choose("hidden/optimum.md");
}

ModelWorld::ModelWorld(Store& at, ScriptedProvider::Script script, Faults faults)
    : world(at, faults) {
  auto scripted = std::make_unique<ScriptedProvider>("fake:m", std::move(script));
  provider = scripted.get();
  std::vector<AskedModel> models;
  models.push_back({std::move(scripted), std::nullopt});
  asker = std::make_unique<Asker>(std::move(models), 2, clock, events);
}

ModelWorld::ModelWorld(Store& at, std::vector<AskedModel> models, Faults faults)
    : world(at, faults), asker(std::make_unique<Asker>(std::move(models), 2, clock, events)) {}

SearchDependencies ModelWorld::dependencies() {
  SearchDependencies dependencies = world.dependencies();
  dependencies.models = asker.get();
  dependencies.tasks = &tasks;
  return dependencies;
}

SearchOptions model_options(int64_t steps, std::vector<std::string> proposers) {
  SearchOptions options = options_of("greedy", 7, steps);
  options.proposers = std::move(proposers);
  options.models.names = {"fake:m"};
  return options;
}

}  // namespace ke::sim
