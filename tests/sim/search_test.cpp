// SPDX-License-Identifier: Apache-2.0
//
// Whole runs in the simulated world: policies find what was planted, ends are honest, duplicates
// are judged once.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>

#include "fakes.hpp"
#include "search/policy.hpp"

namespace ke::sim {
namespace {

std::vector<std::string> policy_names() {
  std::vector<std::string> names;
  for (const PolicyInfo* info : all_policies()) names.emplace_back(info->name);
  return names;
}

class EveryPolicy : public testing::TestWithParam<std::string> {};

TEST_P(EveryPolicy, ReachesThePlantedOptimumWithinBoundedSteps) {
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    SCOPED_TRACE(seed);
    const auto store = make_memory_store();
    World world(*store, {.build_failures = 0.1, .rejections = 0.1});
    // The optimum itself must not be among the planted failures.
    ASSERT_TRUE(world.evaluator.build(print_genes(kPlanted))->failure == std::nullopt);
    SearchOptions options = options_of(GetParam(), seed, 600);
    options.target_speedup = 0.97 * optimum();
    const auto result = search(world.dependencies(), options);
    ASSERT_TRUE(result) << result.error().to_string();
    EXPECT_EQ(result->reason, EndReason::target_speedup) << "after " << result->steps << " steps";
    ASSERT_TRUE(result->evaluation);
    EXPECT_TRUE(result->evaluation->confirmed);
  }
}

TEST_P(EveryPolicy, SameSeedSameJournal) {
  std::string journals[2];
  for (std::string& text : journals) {
    const auto store = make_memory_store();
    World world(*store, {.build_failures = 0.1, .rejections = 0.2});
    text = journal(world.graph, search(world.dependencies(), options_of(GetParam(), 5, 80))->run);
  }
  EXPECT_EQ(journals[0], journals[1]);
}

TEST_P(EveryPolicy, AnotherSeedIsAnotherRun) {
  std::string journals[2];
  for (uint64_t seed = 0; seed < 2; ++seed) {
    const auto store = make_memory_store();
    World world(*store);
    journals[seed] =
        journal(world.graph, search(world.dependencies(), options_of(GetParam(), seed, 20))->run);
  }
  EXPECT_NE(journals[0], journals[1]);
}

TEST_P(EveryPolicy, KeepsGoingWhenNothingIsAccepted) {
  const auto store = make_memory_store();
  World world(*store, {.rejections = 1.0});
  const auto result = search(world.dependencies(), options_of(GetParam(), 1, 30));
  ASSERT_TRUE(result);
  EXPECT_EQ(result->reason, EndReason::steps);
  EXPECT_FALSE(result->best);
  EXPECT_FALSE(result->evaluation.has_value());
  EXPECT_EQ(result->verdicts, (std::map<Verdict, int64_t>{{Verdict::wrong_output, 30}}));
}

INSTANTIATE_TEST_SUITE_P(All, EveryPolicy, testing::ValuesIn(policy_names()),
                         [](const auto& instance) { return instance.param; });

class Search : public testing::Test {
 protected:
  Result<SearchResult> run(const SearchOptions& options) {
    return search(world_.dependencies(), options);
  }
  std::unique_ptr<Store> store_ = make_memory_store();
  World world_{*store_};
  SearchOptions options_ = options_of("greedy", 1, 40);
};

TEST_F(Search, JudgesEveryStepOnceAndTellsOfEach) {
  const auto result = run(options_);
  ASSERT_TRUE(result) << result.error().to_string();
  EXPECT_EQ(result->reason, EndReason::steps);
  EXPECT_EQ(result->steps, 40);
  EXPECT_EQ(result->evaluated, 40);
  std::vector<std::string> screened = world_.evaluator.screened();
  EXPECT_EQ(screened.size(), 40u);
  std::ranges::sort(screened);
  EXPECT_TRUE(std::ranges::adjacent_find(screened) == screened.end());
  EXPECT_EQ(world_.events.count("step.finished"), 40);
  EXPECT_EQ(world_.events.count("run.started"), 1);
  EXPECT_EQ(world_.events.count("run.finished"), 1);
  EXPECT_EQ(world_.events.count("run.confirming"), 3);
  EXPECT_EQ(world_.graph.run(result->run)->end_reason, "steps");
}

TEST_F(Search, BeginsWithDrafts) {
  const RunId id = run(options_)->run;
  const std::vector<NodeRow> nodes = *world_.graph.nodes(id, false);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(nodes[static_cast<size_t>(i)].kind, NodeKind::draft);
  }
  EXPECT_TRUE(
      std::ranges::any_of(nodes, [](const NodeRow& n) { return n.kind == NodeKind::mutate; }));
  EXPECT_TRUE(
      std::ranges::any_of(nodes, [](const NodeRow& n) { return n.kind == NodeKind::cross; }));
}

TEST(BuildAhead, ResultsComeInTheOrderOfProposalsAtAnyDepth) {
  for (const int32_t depth : {0, 1, 6}) {
    SCOPED_TRACE(depth);
    const auto store = make_memory_store();
    World world(*store);
    SearchOptions options = options_of("greedy", 1, 40);
    options.build_ahead = depth;
    const auto result = search(world.dependencies(), options);
    ASSERT_TRUE(result);
    std::vector<std::string> proposed;
    const std::vector<NodeRow> nodes = *world.graph.nodes(result->run, true);
    for (const NodeRow& node : nodes) proposed.push_back(node.source);
    EXPECT_EQ(world.evaluator.screened(), proposed);
  }
}

TEST(BuildAhead, NothingIsProposedWhileTheJudgeWorks) {
  const auto store = make_memory_store();
  std::mutex mutex;
  std::condition_variable proposed;
  bool judging = false, disturbed = false;
  WatchedStore watched(*store, [&](int64_t) -> Result<void> {
    const std::lock_guard lock(mutex);
    disturbed |= judging;  // every proposal is recorded at once
    proposed.notify_all();
    return {};
  });
  World world(watched);
  world.evaluator.on_screen = [&](int64_t call) {
    std::unique_lock lock(mutex);
    judging = true;
    // Time enough for a proposal that is under way to show.
    if (call >= 5 && call < 10) {
      proposed.wait_for(lock, std::chrono::milliseconds(20), [&] { return disturbed; });
    }
    judging = false;
  };
  ASSERT_TRUE(search(world.dependencies(), options_of("greedy", 1, 40)));
  EXPECT_EQ(world.evaluator.screened().size(), 40u);
  EXPECT_FALSE(disturbed);
}

TEST_F(Search, AnUnknownPolicyOrProposerIsTheUsersMistake) {
  options_.policy = "luck";
  EXPECT_EQ(run(options_).error().message,
            "there is no policy 'luck'; choose one of: greedy, islands, mcts");
  options_.policy = "greedy";
  options_.proposers = {"muse"};
  EXPECT_EQ(run(options_).error().message,
            "there is no proposer 'muse'; choose from: genes, idle, tune");
  options_.proposers = {};
  EXPECT_EQ(run(options_).error().code, Errc::invalid);
}

TEST_F(Search, ReusesWhatAnEarlierRunJudged) {
  ASSERT_TRUE(run(options_));
  const size_t before = world_.evaluator.screened().size();
  const auto again = run(options_);
  ASSERT_TRUE(again);
  EXPECT_GT(again->reused, 0);
  EXPECT_EQ(again->evaluated, 40) << "reused nodes cost no step";
  std::vector<std::string> screened = world_.evaluator.screened();
  EXPECT_EQ(screened.size(), before + 40);
  std::ranges::sort(screened);
  EXPECT_TRUE(std::ranges::adjacent_find(screened) == screened.end());
  EXPECT_TRUE(again->evaluation->confirmed) << "confirmed anew, not taken over";
}

TEST_F(Search, OtherConditionsReuseNothing) {
  ASSERT_TRUE(run(options_));
  SearchDependencies dependencies = world_.dependencies();
  dependencies.conditions.precision = Precision::ieee;
  EXPECT_EQ(search(dependencies, options_)->reused, 0);
}

TEST_F(Search, StartsFromTheBestOfEarlierRuns) {
  const auto first = run(options_);
  options_.history_seeds = 2;
  options_.seed = 77;
  const auto second = run(options_);
  const std::vector<NodeRow> nodes = *world_.graph.nodes(second->run, true);
  EXPECT_EQ(nodes[0].kind, NodeKind::seed);
  EXPECT_EQ(nodes[0].proposer, "history");
  EXPECT_EQ(nodes[0].parents, std::vector<NodeId>{first->best});
  EXPECT_GE(*fitness(*second->evaluation), *fitness(*first->evaluation));
}

TEST_F(Search, TakesTheUsersKernelAndTunesIt) {
  options_.seeds = {{"mine.cpp", "// ke:tune N in {1, 2, 3}\nint N = 1;\n"}};
  options_.proposers = {"tune"};
  const auto result = run(options_);
  ASSERT_TRUE(result) << result.error().to_string();
  EXPECT_EQ(result->reason, EndReason::exhausted);
  EXPECT_EQ(result->steps, 3);
  const std::vector<NodeRow> nodes = *world_.graph.nodes(result->run, true);
  EXPECT_EQ(nodes[0].proposer, "user");
  EXPECT_EQ(nodes[0].note, "mine.cpp");
  EXPECT_EQ(nodes[1].proposer, "tune");
  EXPECT_EQ(nodes[1].parents, std::vector<NodeId>{nodes[0].id});
}

TEST_F(Search, EndsWhenNoProposerHasAnIdea) {
  options_.proposers = {"idle"};
  const auto result = run(options_);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->reason, EndReason::exhausted);
  EXPECT_EQ(result->steps, 0);
}

TEST_F(Search, EndsAtTheTimeLimit) {
  options_.time_limit = Milliseconds{95};  // a judgement takes 10
  const auto result = run(options_);
  EXPECT_EQ(result->reason, EndReason::time);
  EXPECT_EQ(result->evaluated, 10);
}

TEST_F(Search, EndsNearThePhysicalFloor) {
  world_.evaluator.floor = 400'000;
  const auto result = run(options_);
  EXPECT_EQ(result->reason, EndReason::near_floor);
  EXPECT_LE(result->evaluation->measurement->time_ns, 440'000);
  options_.stop_near_floor = false;
  EXPECT_NE(run(options_)->reason, EndReason::near_floor);
}

TEST_F(Search, EndsWhenItStalls) {
  options_.steps = 5000;
  options_.stall_steps = 120;
  EXPECT_EQ(run(options_)->reason, EndReason::stall);
}

TEST_F(Search, AStopFinishesTheJudgementUnderWayAndConfirmsTheBest) {
  world_.evaluator.on_screen = [&](int64_t call) {
    if (call == 12) world_.stop.request_stop();
  };
  const auto result = run(options_);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->reason, EndReason::stopped);
  EXPECT_EQ(result->evaluated, 12);
  EXPECT_TRUE(result->evaluation->confirmed);
  EXPECT_EQ(world_.evaluator.confirmations(), 1);
}

TEST_F(Search, AStopMayLeaveTheBestUnconfirmed) {
  options_.confirm_on_stop = false;
  world_.evaluator.on_screen = [&](int64_t) { world_.stop.request_stop(); };
  const auto result = run(options_);
  ASSERT_TRUE(result);
  EXPECT_TRUE(result->best);
  EXPECT_FALSE(result->evaluation->confirmed);
  EXPECT_EQ(world_.evaluator.confirmations(), 0);
}

TEST(Confirmation, PassesOverCandidatesThatFailIt) {
  const auto store = make_memory_store();
  World world(*store, {.failing_confirmations = 4});
  const auto result = search(world.dependencies(), options_of("greedy", 1, 40));
  ASSERT_TRUE(result);
  EXPECT_TRUE(result->evaluation->confirmed);
  EXPECT_EQ(world.evaluator.confirmations(), 5) << "four fail, the fifth passes";
  EXPECT_EQ(world.graph.best_of_run(result->run, 1)->front().node, result->best);
}

}  // namespace
}  // namespace ke::sim
