// SPDX-License-Identifier: Apache-2.0
//
// Runs with models that are cut off at any insert lose nothing that was paid for, and every run,
// whole or resumed, can be played again from what it recorded.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/json.hpp"
#include "model_fakes.hpp"
#include "search/replay.hpp"

namespace ke::sim {
namespace {

constexpr Faults kModelFaults{.build_failures = 0.1, .rejections = 0.2};

// Good answers, tools, talk that is followed up, and failures, by the prompt alone.
llm::Outcome moody(const Call& call) {
  Rng rng = Rng(3).split(llm::prompt_digest(call.request).hex());
  const double mood = rng.uniform();
  if (mood < 0.2) return say("Let me think.");
  if (mood < 0.3) return llm::Failure{llm::FailureKind::overloaded, "busy"};
  if (mood < 0.45) return ask_search();
  if (mood < 0.55) return ask_compile(kPlanted);
  return answer_of(call);
}

Result<ReplayReport> play(const Json& recorded) {
  const Recording recording = TRY(decode_recording(recorded));
  const RunDescription about =
      TRY(decode_run_description(TRY(parse_json(recording.run.description))));
  const testing_support::FakeTarget target;
  NullEvents events;
  const auto tasks = [](GroundSource& ground) { return std::make_unique<GenesTasks>(&ground); };
  const std::vector<const ProposerInfo*> proposers = {&kGenesProposer, &kIdleProposer};
  return replay(recording, {.target = target,
                            .about = about,
                            .programs = {},
                            .tasks = tasks,
                            .proposers = proposers,
                            .events = events});
}

// No prompt has two answers or is followed twice, and none that is good was thrown away.
void expect_nothing_lost(const GraphReader& graph, RunId run) {
  const std::vector<ExchangeRow> exchanges = *graph.exchanges(run);
  const std::vector<NodeRow> nodes = *graph.nodes(run, true);
  std::map<PromptId, int> tools, faults;  // so far in the conversation
  std::set<PromptId> followed;
  for (const ExchangeRow& exchange : exchanges) {
    const auto whole = std::ranges::count(exchange.answers, false, &AnswerRow::early);
    EXPECT_LE(whole, 1) << "prompt " << exchange.prompt.id.value << " was asked again";
    const PromptRow& row = exchange.prompt;
    if (!row.follows) continue;
    EXPECT_TRUE(followed.insert(row.follows).second) << row.follows.value << " is followed twice";
    tools[row.id] = tools[row.follows] + (row.ground.empty() ? 0 : 1);
    faults[row.id] = faults[row.follows] + (row.ground.empty() ? 1 : 0);
    EXPECT_LE(tools[row.id], kToolCallsMax);
    EXPECT_LE(faults[row.id], 1);
  }
  for (const NodeRow& node : nodes) {
    if (!node.prompt) continue;
    const ExchangeRow exchange = *graph.exchange(node.prompt);
    EXPECT_FALSE(exchange.answers.empty());
  }
}

TEST(Replay, PlaysAWholeRunAgain) {
  for (const uint64_t seed : {1, 2, 3}) {
    SCOPED_TRACE(seed);
    const auto store = make_memory_store();
    ModelWorld it(*store, moody, kModelFaults);
    SearchOptions options = model_options(24);
    options.seed = seed;
    const auto result = search(it.dependencies(), options);
    ASSERT_TRUE(result) << result.error().to_string();
    const auto report = play(*export_run(it.world.graph, result->run));
    ASSERT_TRUE(report) << report.error().to_string();
    EXPECT_EQ(report->nodes, result->steps);
    EXPECT_EQ(report->evaluations, result->evaluated);
    EXPECT_GE(report->prompts, 1);
  }
}

TEST(Replay, PlaysARunWithoutModelsAgain) {
  const auto store = make_memory_store();
  World world(*store, kModelFaults);
  SearchOptions options = options_of("mcts", 4, 30);
  options.proposers = {"genes", "idle"};
  options.seeds = {{"mine", "genes 1 1 1 1 1 1"}};
  const auto result = search(world.dependencies(), options);
  const auto report = play(*export_run(world.graph, result->run));
  ASSERT_TRUE(report) << report.error().to_string();
  EXPECT_EQ(report->nodes, 30);
}

TEST(Replay, AfterACutAtAnyInsertNothingIsLostAndTheWholePlaysAgain) {
  const SearchOptions options = model_options(14);
  for (int64_t moment = 2; moment <= 60; moment += 3) {
    SCOPED_TRACE(fmt::format("cut off at insert {}", moment));
    const auto store = make_memory_store();
    bool cut = false;
    {
      WatchedStore watched(*store, [&](int64_t insert) -> Result<void> {
        if (insert != moment) return {};
        cut = true;
        return Error{Errc::unavailable, "the disk is full"};
      });
      ModelWorld it(watched, moody, kModelFaults);
      const bool whole = search(it.dependencies(), options).has_value();
      EXPECT_EQ(whole, !cut);
    }
    ModelWorld it(*store, moody, kModelFaults);
    const RunId run = **it.world.graph.latest_run();
    const auto result = resume(it.dependencies(), run, options);
    ASSERT_TRUE(result) << result.error().to_string();
    EXPECT_EQ(result->evaluated, 14);
    expect_nothing_lost(it.world.graph, run);
    const auto report = play(*export_run(it.world.graph, run));
    ASSERT_TRUE(report) << report.error().to_string();
  }
}

// One conversation: a search, a fault, a compilation and the kernel.
TEST(Replay, AConversationThatIsCutAtAnyInsertGoesOnWhereItWas) {
  const auto script = [](const Call& call) {
    const size_t messages = call.request.messages.size();
    if (messages == 1) return ask_search();
    if (messages == 3) return say("Let me think.");
    return messages == 5 ? ask_compile(kPlanted) : answer_of(call);
  };
  SearchOptions options = model_options(1, {"llm"});
  options.models.calls = 1;
  bool cut = true;
  int64_t cuts = 0;
  for (int64_t moment = 1; cut; ++moment) {
    SCOPED_TRACE(fmt::format("cut off at insert {}", moment));
    const auto store = make_memory_store();
    cut = false;
    {
      WatchedStore watched(*store, [&](int64_t insert) -> Result<void> {
        if (insert != moment) return {};
        cut = true;
        return Error{Errc::unavailable, "the disk is full"};
      });
      ModelWorld it(watched, script);
      const bool whole = search(it.dependencies(), options).has_value();
      EXPECT_EQ(whole, !cut);
    }
    cuts += cut ? 1 : 0;
    ModelWorld it(*store, script);
    const RunId run = **it.world.graph.latest_run();
    if (cut) {
      const auto result = resume(it.dependencies(), run, options);
      ASSERT_TRUE(result) << result.error().to_string();
      EXPECT_EQ(result->evaluated, 1);
      EXPECT_EQ(result->models.calls, 4);
    }
    const std::vector<ExchangeRow> exchanges = *it.world.graph.exchanges(run);
    ASSERT_EQ(exchanges.size(), 4u);
    for (size_t i = 0; i < 4; ++i) {
      EXPECT_EQ(exchanges[i].answers.size(), 1u);
      EXPECT_EQ(exchanges[i].prompt.follows, i == 0 ? PromptId() : exchanges[i - 1].prompt.id);
    }
    EXPECT_NE(exchanges[3].prompt.request.find("use"), std::string::npos);
    const auto report = play(*export_run(it.world.graph, run));
    ASSERT_TRUE(report) << report.error().to_string();
  }
  EXPECT_GE(cuts, 10) << "four prompts, four answers, a node and its evaluation";
}

TEST(Replay, TakesWhatAToolGaveFromTheRecording) {
  const auto store = make_memory_store();
  ModelWorld it(*store, [](const Call& call) {
    return call.request.messages.size() == 1 ? ask_search() : answer_of(call);
  });
  SearchOptions options = model_options(1, {"llm"});
  options.models.calls = 1;
  const auto result = search(it.dependencies(), options);
  Json recorded = *export_run(it.world.graph, result->run);
  EXPECT_TRUE(play(recorded));
  recorded["prompts"][1]["ground"]["result"] = "something else";
  const auto report = play(recorded);
  ASSERT_FALSE(report);
  EXPECT_NE(report.error().message.find("message 3 differs from line 1 on"), std::string::npos)
      << report.error().message;
}

class Tampered : public testing::Test {
 protected:
  void SetUp() override {
    ModelWorld it(*store_, answer_of);
    const auto result = search(it.dependencies(), model_options(8, {"llm"}));
    recorded_ = *export_run(it.world.graph, result->run);
  }
  std::string refusal() {
    const auto report = play(recorded_);
    return report ? "nothing differs" : report.error().message;
  }
  std::unique_ptr<Store> store_ = make_memory_store();
  Json recorded_;
};

TEST_F(Tampered, APromptThatIsMadeAnotherWayNow) {
  EXPECT_EQ(refusal(), "nothing differs");
  Json& prompt = recorded_["prompts"][1];
  prompt["request"]["messages"][0]["text"] = "draft of\nother nodes";
  prompt["digest"] = digest_of("another").hex();
  EXPECT_NE(refusal().find("message 1 differs from line 1 on"), std::string::npos) << refusal();
  EXPECT_NE(refusal().find("is prompt 2 (llm, fake:m)"), std::string::npos) << refusal();
}

TEST_F(Tampered, ASourceThatIsReadAnotherWayNow) {
  Json& node = recorded_["nodes"][2];
  node["source"] = "genes 0 0 0 0 0 0";
  node["source_digest"] = digest_of("genes 0 0 0 0 0 0").hex();
  EXPECT_NE(refusal().find("the replay's source differs from line 1 on"), std::string::npos)
      << refusal();
}

TEST_F(Tampered, AnAnswerThatIsReadAnotherWayNow) {
  recorded_["prompts"][0]["answers"][0]["fault"] = "no block";
  EXPECT_NE(refusal().find("reads a kernel out of the answer to prompt 1, not 'no block'"),
            std::string::npos)
      << refusal();
}

TEST_F(Tampered, ARunThatBuildsOnAnother) {
  recorded_["nodes"][0]["proposer"] = "history";
  EXPECT_NE(refusal().find("cannot be replayed by itself"), std::string::npos) << refusal();
}

TEST_F(Tampered, KernelsAreJudgedAgainByTheirVerdicts) {
  recorded_["nodes"][1]["evaluations"][0]["evaluation"]["verdict"] = "crashed";
  recorded_["nodes"][1]["evaluations"][0]["evaluation"].erase("measurement");
  const Recording recording = *decode_recording(recorded_);
  os::FakeClock clock;
  FakeEvaluator judge(clock);
  NullEvents events;
  const auto others = judge_again(recording, judge, events, {});
  ASSERT_TRUE(others) << others.error().to_string();
  ASSERT_EQ(others->size(), 1u);
  EXPECT_EQ(others->front().recorded, Verdict::crashed);
  EXPECT_EQ(others->front().now, Verdict::accepted);
}

}  // namespace
}  // namespace ke::sim
