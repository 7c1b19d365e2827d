// SPDX-License-Identifier: Apache-2.0
//
// Runs with language models in the simulated world: what is asked, what comes of it, and that a run
// outlives its models.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <thread>

#include "base/json.hpp"
#include "llm/budget.hpp"
#include "model_fakes.hpp"

namespace ke::sim {
namespace {

int64_t written(const GraphReader& graph, RunId run) {
  const std::vector<NodeRow> nodes = *graph.nodes(run, false);
  return std::ranges::count_if(nodes, [](const NodeRow& n) { return static_cast<bool>(n.prompt); });
}

TEST(ModelRun, AnAnswerBecomesANodeThatNamesItsPrompt) {
  const auto store = make_memory_store();
  ModelWorld it(*store, answer_of);
  const auto result = search(it.dependencies(), model_options(12));
  ASSERT_TRUE(result) << result.error().to_string();
  EXPECT_EQ(result->reason, EndReason::steps);
  EXPECT_EQ(result->evaluated, 12);
  const std::vector<NodeRow> nodes = *it.world.graph.nodes(result->run, true);
  const auto told = std::ranges::find_if(
      nodes, [](const NodeRow& node) { return static_cast<bool>(node.prompt); });
  ASSERT_NE(told, nodes.end());
  EXPECT_EQ(told->proposer, "llm");
  const ExchangeRow exchange = *it.world.graph.exchange(told->prompt);
  EXPECT_EQ(exchange.prompt.model, "fake:m");
  EXPECT_EQ(exchange.prompt.stable, "Write genes.");
  ASSERT_EQ(exchange.answers.size(), 1u);
  EXPECT_NE(exchange.answers[0].outcome.find(told->source), std::string::npos);
  EXPECT_EQ(result->models.kernels, written(it.world.graph, result->run));
  EXPECT_EQ(result->models.tokens, 150 * result->models.calls);
}

TEST(ModelRun, AModelAloneMakesTheWholeRun) {
  const auto store = make_memory_store();
  ModelWorld it(*store, answer_of);
  const auto result = search(it.dependencies(), model_options(8, {"llm"}));
  ASSERT_TRUE(result) << result.error().to_string();
  EXPECT_EQ(result->reason, EndReason::steps);
  EXPECT_EQ(written(it.world.graph, result->run), 8);
}

TEST(ModelRun, HalfOfTheStepsWaitForASlowModel) {
  const auto store = make_memory_store();
  ModelWorld* running = nullptr;
  ModelWorld it(*store, [&](const Call& call) {
    // Until the embedded proposers have used up theirs.
    while (running->world.evaluator.screened().size() < 10 && !call.stop.stop_requested()) {
      std::this_thread::yield();
    }
    return answer_of(call);
  });
  running = &it;
  const auto result = search(it.dependencies(), model_options(20));
  ASSERT_TRUE(result) << result.error().to_string();
  EXPECT_EQ(result->evaluated, 20);
  const std::vector<NodeRow> nodes = *it.world.graph.nodes(result->run, false);
  for (size_t i = 0; i < 10; ++i) EXPECT_FALSE(nodes[i].prompt) << i;
  EXPECT_GE(written(it.world.graph, result->run), 1);
}

TEST(ModelRun, AFaultIsFollowedUpOnceInItsConversation) {
  const auto store = make_memory_store();
  ModelWorld it(*store, [](const Call& call) {
    return call.request.messages.size() == 1 ? say("I would rather talk.") : answer_of(call);
  });
  const auto result = search(it.dependencies(), model_options(6, {"llm"}));
  ASSERT_TRUE(result) << result.error().to_string();
  EXPECT_EQ(result->evaluated, 6);
  const std::vector<ExchangeRow> exchanges = *it.world.graph.exchanges(result->run);
  int64_t follow_ups = 0;
  for (const ExchangeRow& exchange : exchanges) {
    if (exchange.answers.empty()) continue;  // cut off by the end of the run
    if (!exchange.prompt.follows) {
      EXPECT_NE(exchange.answers[0].fault, "");
      continue;
    }
    ++follow_ups;
    EXPECT_EQ(exchange.answers[0].fault, "");
    const ExchangeRow before = *it.world.graph.exchange(exchange.prompt.follows);
    EXPECT_NE(exchange.prompt.request.find(before.answers[0].fault.substr(0, 20)),
              std::string::npos)
        << "the next prompt explains the fault";
  }
  EXPECT_GE(follow_ups, 6);
}

constexpr Genes kTried = {0, 0, 0, 0, 0, 0};

// Prompts by the first of their conversation, in order.
std::map<PromptId, std::vector<ExchangeRow>> conversations(const GraphReader& graph, RunId run) {
  std::map<PromptId, std::vector<ExchangeRow>> all;
  std::map<PromptId, PromptId> first;
  const std::vector<ExchangeRow> exchanges = *graph.exchanges(run);
  for (const ExchangeRow& exchange : exchanges) {
    const PromptRow& row = exchange.prompt;
    first[row.id] = row.follows ? first.at(row.follows) : row.id;
    all[first[row.id]].push_back(exchange);
  }
  return all;
}

TEST(ModelRun, ToolsAreUsedBeforeTheKernelAndCostNoStep) {
  const auto store = make_memory_store();
  ModelWorld it(*store, [](const Call& call) {
    const size_t messages = call.request.messages.size();
    if (messages == 1) return ask_search();
    return messages < 11 ? ask_compile(kTried) : answer_of(call);
  });
  const auto result = search(it.dependencies(), model_options(6, {"llm"}));
  ASSERT_TRUE(result) << result.error().to_string();
  EXPECT_EQ(result->evaluated, 6) << "five tools a kernel leave all steps to kernels";
  const std::vector<std::string> screened = it.world.evaluator.screened();
  EXPECT_EQ(std::ranges::count(screened, print_genes(kTried)), 0) << "compiled, never judged";
  int64_t whole = 0, prompts = 0;
  for (const auto& [id, exchanges] : conversations(it.world.graph, result->run)) {
    prompts += static_cast<int64_t>(exchanges.size());
    if (exchanges.size() < 6 || exchanges.back().answers.empty()) continue;  // the run ended
    ++whole;
    EXPECT_EQ(exchanges[0].answers[0].fault, "asked for search");
    EXPECT_EQ(exchanges[1].answers[0].fault, "asked for compile");
    EXPECT_EQ(exchanges[5].answers[0].fault, "");
    const Json ground = *parse_json(exchanges[1].prompt.ground);
    EXPECT_EQ(ground["tool"]["query"].get<std::string>(), "genes");
    const auto gave = ground["result"].get<std::string>();
    EXPECT_NE(exchanges[1].prompt.request.find(gave), std::string::npos);
    EXPECT_NE(exchanges[5].prompt.request.find(gave), std::string::npos);
    EXPECT_NE(exchanges[5].prompt.request.find(", 1 left"), std::string::npos);
  }
  EXPECT_GE(whole, 6);
  EXPECT_GE(it.world.events.count("model.tool"), 5 * whole);
  EXPECT_GE(result->models.calls, 6 * whole) << "every call is charged";
  EXPECT_LE(result->models.calls, prompts);
}

TEST(ModelRun, ToolsBeyondTheLimitAreAFault) {
  const auto store = make_memory_store();
  ModelWorld it(*store, [](const Call& call) {
    const std::string& last = call.request.messages.back().text;
    return last.find("All 6 tools") == std::string::npos ? ask_search() : answer_of(call);
  });
  SearchOptions options = model_options(3, {"llm"});
  options.models.calls = 1;
  const auto result = search(it.dependencies(), options);
  ASSERT_TRUE(result) << result.error().to_string();
  EXPECT_EQ(result->evaluated, 3);
  const auto all = conversations(it.world.graph, result->run);
  EXPECT_EQ(all.size(), 3u);
  for (const auto& [id, exchanges] : all) {
    ASSERT_EQ(exchanges.size(), 8u);
    EXPECT_EQ(exchanges[5].answers[0].fault, "asked for search");
    EXPECT_EQ(exchanges[6].answers[0].fault, "All 6 tools were used; write the kernel now.");
    EXPECT_EQ(exchanges[7].answers[0].fault, "");
  }
}

TEST(ModelRun, AmongToolsAFaultIsFollowedUpOnceAsWell) {
  const auto store = make_memory_store();
  ModelWorld it(*store, [](const Call& call) {
    const size_t messages = call.request.messages.size();
    return messages == 3 ? ask_search() : say("I would rather talk.");
  });
  const auto result = search(it.dependencies(), model_options(2, {"llm"}));
  ASSERT_TRUE(result) << result.error().to_string();
  EXPECT_EQ(result->reason, EndReason::exhausted);
  for (const auto& [id, exchanges] : conversations(it.world.graph, result->run)) {
    if (exchanges.size() > 2) {
      EXPECT_EQ(exchanges[1].prompt.ground, "") << "it follows a fault";
      EXPECT_NE(exchanges[2].prompt.ground.find("search"), std::string::npos);
    }
    EXPECT_LE(exchanges.size(), 3u) << "talk, then a search, then talk again: the end";
  }
  EXPECT_GE(it.world.events.count("model.tool"), 1);
}

TEST(ModelRun, AModelThatOnlyUsesToolsEndsTheRun) {
  const auto store = make_memory_store();
  ModelWorld it(*store, [](const Call&) { return ask_search(); });
  const auto result = search(it.dependencies(), model_options(2, {"llm"}));
  ASSERT_TRUE(result) << result.error().to_string();
  EXPECT_EQ(result->reason, EndReason::exhausted);
}

TEST(ModelRun, AModelThatNeverWritesAKernelEndsTheRunAndNotTheProcess) {
  const auto store = make_memory_store();
  ModelWorld it(*store, [](const Call&) { return say("no"); });
  const auto result = search(it.dependencies(), model_options(5, {"llm"}));
  ASSERT_TRUE(result) << result.error().to_string();
  EXPECT_EQ(result->reason, EndReason::exhausted);
  EXPECT_FALSE(result->best);
}

TEST(ModelRun, TheSameKernelAgainIsNoNode) {
  const auto store = make_memory_store();
  ModelWorld it(*store, [](const Call&) { return say(block(kPlanted)); });
  const auto result = search(it.dependencies(), model_options(10));
  ASSERT_TRUE(result) << result.error().to_string();
  EXPECT_EQ(result->evaluated, 10);
  EXPECT_LE(written(it.world.graph, result->run), 1);
}

// Prompts that say no more than what they were made from.
class TerseTasks final : public GenesTasks {
 public:
  Result<std::optional<ModelTask>> make(const ProposalContext& context, ModelStyle style,
                                        std::optional<int64_t> tokens_max) const override {
    std::optional<ModelTask> task = TRY(GenesTasks::make(context, style, tokens_max));
    std::string& text = task->request.messages.front().text;
    text = text.find('\n') == std::string::npos ? "draft" : text.substr(text.find('\n') + 1);
    return task;
  }
};

TEST(ModelRun, AQuestionIsAskedAgainOnlyWhenItIsKnownWhatCameOfIt) {
  const auto store = make_memory_store();
  ModelWorld it(*store, answer_of);
  const TerseTasks tasks;
  SearchDependencies dependencies = it.dependencies();
  dependencies.tasks = &tasks;
  SearchOptions options = model_options(16, {"llm"});
  options.models.calls = 1;
  const auto result = search(dependencies, options);
  ASSERT_TRUE(result) << result.error().to_string();
  std::map<PromptId, int64_t> judged_at;  // evaluations that were known when its kernel was
  const std::vector<NodeRow> nodes = *it.world.graph.nodes(result->run, false);
  for (const NodeRow& node : nodes) judged_at[node.prompt] = node.step;
  std::map<Digest, PromptId> last;
  int repeats = 0;
  const std::vector<ExchangeRow> exchanges = *store->exchanges({.run = result->run});
  for (const ExchangeRow& exchange : exchanges) {
    const PromptRow& prompt = exchange.prompt;
    const auto before = last.find(prompt.digest);
    if (before != last.end() && judged_at.contains(before->second)) {
      ++repeats;
      EXPECT_GE(prompt.consumed, judged_at.at(before->second)) << prompt.id.value;
    }
    last[prompt.digest] = prompt.id;
  }
  EXPECT_GT(repeats, 0) << "nothing was tested";
}

TEST(ModelRun, OutlivesAnEndpointThatDies) {
  const auto store = make_memory_store();
  ModelWorld it(*store, [](const Call& call) {
    if (call.number <= 2) return answer_of(call);
    return llm::Outcome(llm::Failure{llm::FailureKind::unreachable, "the line is dead"});
  });
  const auto result = search(it.dependencies(), model_options(20));
  ASSERT_TRUE(result) << result.error().to_string();
  EXPECT_EQ(result->reason, EndReason::steps);
  EXPECT_EQ(result->evaluated, 20);
  EXPECT_EQ(it.world.events.count("models.away"), 1);
  EXPECT_EQ(it.world.events.count("model.ended {\"message\":\"the line is dead\""), 1);
}

TEST(ModelRun, EndsItsModelsWithTheBudgetAndSaysSoOnce) {
  const auto store = make_memory_store();
  llm::LlmBudget budget({.calls = 3});
  std::vector<AskedModel> models;
  models.push_back({llm::with_budget(std::make_unique<ScriptedProvider>("fake:m", answer_of),
                                     budget, std::nullopt),
                    std::nullopt});
  ModelWorld it(*store, std::move(models));
  const auto result = search(it.dependencies(), model_options(20));
  ASSERT_TRUE(result) << result.error().to_string();
  EXPECT_EQ(result->evaluated, 20);
  EXPECT_EQ(budget.spent().calls, 3);
  EXPECT_EQ(result->models.calls, 3) << "what the budget forbade was never sent";
  EXPECT_LE(written(it.world.graph, result->run), 3);
  EXPECT_EQ(it.world.events.count("models.away"), 1);
}

TEST(ModelRun, AnOverflowMakesTheNextPromptFit) {
  const auto store = make_memory_store();
  ModelWorld it(*store, [](const Call& call) {
    if (call.request.messages[0].text.find("tokens") != std::string::npos) return answer_of(call);
    return llm::Outcome(llm::Failure{.kind = llm::FailureKind::context_overflow,
                                     .message = "too long",
                                     .context_tokens_max = 8'000});
  });
  const auto result = search(it.dependencies(), model_options(6, {"llm"}));
  ASSERT_TRUE(result) << result.error().to_string();
  EXPECT_EQ(result->evaluated, 6);
}

TEST(ModelRun, ABlockIsJudgedWhileTheModelWrites) {
  const auto store = make_memory_store();
  ModelWorld* running = nullptr;
  std::atomic<bool> judged_first{false};
  ModelWorld it(*store, [&](const Call& call) {
    const llm::Outcome answer = answer_of(call);
    call.on_delta({answer->text});
    // The rest of the answer comes when its block has been judged.
    const std::string source = answer->text.substr(answer->text.find("genes"), 17);
    for (int i = 0; i < 5'000 && !call.stop.stop_requested(); ++i) {
      const std::vector<std::string> screened = running->world.evaluator.screened();
      if (std::ranges::find(screened, source) != screened.end()) {
        judged_first = true;
        break;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return say(answer->text + "That is all.\n");
  });
  running = &it;
  const auto result = search(it.dependencies(), model_options(4, {"llm"}));
  ASSERT_TRUE(result) << result.error().to_string();
  EXPECT_TRUE(judged_first);
  EXPECT_GE(it.world.events.count("model.early"), 1);
}

TEST(ModelRun, AGoalThatAnEarlyBlockReachesEndsTheStream) {
  const auto store = make_memory_store();
  std::atomic<bool> ended{false};
  ModelWorld it(*store, [&](const Call& call) {
    call.on_delta({block(kPlanted)});
    for (int i = 0; i < 10'000 && !call.stop.stop_requested(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    ended = call.stop.stop_requested();
    llm::Completion cut;
    cut.finish = llm::FinishReason::stopped_by_us;
    return llm::Outcome(cut);
  });
  SearchOptions options = model_options(50, {"llm"});
  options.target_speedup = optimum() * 0.99;
  const auto result = search(it.dependencies(), options);
  ASSERT_TRUE(result) << result.error().to_string();
  EXPECT_EQ(result->reason, EndReason::target_speedup);
  EXPECT_TRUE(ended);
  EXPECT_GE(it.world.events.count("model.cut"), 1);
}

TEST(ModelRun, AStopEndsCallsAndKeepsThePromptForLater) {
  const auto store = make_memory_store();
  ModelWorld it(*store, [&](const Call& call) {
    it.world.stop.request_stop();
    while (!call.stop.stop_requested()) std::this_thread::yield();
    llm::Completion cut;
    cut.finish = llm::FinishReason::stopped_by_us;
    return llm::Outcome(cut);
  });
  const SearchOptions options = model_options(10, {"llm"});
  const auto result = search(it.dependencies(), options);
  ASSERT_TRUE(result) << result.error().to_string();
  EXPECT_EQ(result->reason, EndReason::stopped);
  const size_t prompts = it.world.graph.exchanges(result->run)->size();
  EXPECT_GE(prompts, 1u);
  ModelWorld later(*store, answer_of);
  const auto resumed = resume(later.dependencies(), result->run, options);
  ASSERT_TRUE(resumed) << resumed.error().to_string();
  EXPECT_EQ(resumed->evaluated, 10);
  const std::vector<ExchangeRow> exchanges = *later.world.graph.exchanges(result->run);
  EXPECT_EQ(exchanges[0].answers.size(), 1u) << "asked again under its old row";
}

TEST(ModelRun, AProposerThatAsksNeedsAModel) {
  const auto store = make_memory_store();
  World world(*store);
  const auto refused = search(world.dependencies(), model_options(5));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "the proposer 'llm' needs a language model; name one");
}

TEST(ModelRun, OptionsAreKeptWithTheRun) {
  const auto store = make_memory_store();
  ModelWorld it(*store, answer_of);
  SearchOptions options = model_options(3);
  options.models.tokens_max = 5'000'000;
  options.models.usd_max = 1.5;
  options.models.share = 0.25;
  const auto result = search(it.dependencies(), options);
  const SearchOptions kept = *run_options(it.world.graph, result->run);
  EXPECT_EQ(kept.models.names, options.models.names);
  EXPECT_EQ(kept.models.tokens_max, 5'000'000);
  EXPECT_EQ(kept.models.usd_max, 1.5);
  EXPECT_EQ(kept.models.calls_max, std::nullopt);
  EXPECT_EQ(kept.models.share, 0.25);
}

}  // namespace
}  // namespace ke::sim
