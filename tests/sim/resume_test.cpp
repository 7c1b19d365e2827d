// SPDX-License-Identifier: Apache-2.0
//
// Runs that are cut off: after a broken judge, a full disk or SIGKILL at any insert, resuming goes
// on as if nothing had happened. A failing case prints its seed and its moment.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "fakes.hpp"
#include "search/policy.hpp"

namespace ke::sim {
namespace {

constexpr Faults kFaults{.build_failures = 0.1, .rejections = 0.2};

// What the run looks like when nobody interrupts it.
std::string undisturbed(const SearchOptions& options) {
  const auto store = make_memory_store();
  World world(*store, kFaults);
  return journal(world.graph, search(world.dependencies(), options)->run);
}

// Sources that have a recorded screening.
std::set<std::string> judged_sources(const GraphReader& graph, RunId run) {
  std::set<std::string> sources;
  const std::vector<NodeEvaluation> evaluations = *graph.evaluations_of_run(run);
  for (const NodeEvaluation& one : evaluations) {
    if (one.effort == "screen") sources.insert(graph.node(one.node)->source);
  }
  return sources;
}

// Resumes in a fresh world over what the store holds, and checks D8 in full.
void expect_seamless(Store& store, const SearchOptions& options, const std::string& expected) {
  World world(store, kFaults);
  const RunId run = **world.graph.latest_run();
  const std::set<std::string> before = judged_sources(world.graph, run);
  const auto result = resume(world.dependencies(), run, options);
  ASSERT_TRUE(result) << result.error().to_string();
  for (const std::string& source : world.evaluator.screened()) {
    EXPECT_FALSE(before.contains(source)) << "judged again: " << source;
  }
  const std::set<std::string> after = judged_sources(world.graph, run);
  EXPECT_TRUE(std::ranges::includes(after, before)) << "an evaluated node was lost";
  EXPECT_EQ(journal(world.graph, run), expected);
}

TEST(Resume, AfterAFailedInsertAtAnyMomentTheJournalIsTheSame) {
  for (const PolicyInfo* policy : all_policies()) {
    const SearchOptions options = options_of(std::string(policy->name), 3, 30);
    const std::string expected = undisturbed(options);
    for (int64_t moment = 1; moment <= 62; moment += 2) {
      SCOPED_TRACE(fmt::format("{} cut off at insert {}", policy->name, moment));
      const auto store = make_memory_store();
      WatchedStore failing(*store, [&](int64_t insert) -> Result<void> {
        if (insert >= moment) return Error{Errc::unavailable, "the disk is full"};
        return {};
      });
      World world(failing, kFaults);
      const auto cut = search(world.dependencies(), options);
      ASSERT_FALSE(cut);
      EXPECT_EQ(cut.error().code, Errc::unavailable);
      expect_seamless(*store, options, expected);
    }
  }
}

TEST(Resume, AfterABrokenJudgeTheRunGoesOn) {
  const SearchOptions options = options_of("mcts", 9, 30);
  const std::string expected = undisturbed(options);
  for (const int64_t call : {1, 2, 7, 20}) {
    SCOPED_TRACE(call);
    const auto store = make_memory_store();
    Faults faults = kFaults;
    faults.judge_error_at = call;
    World world(*store, faults);
    const auto cut = search(world.dependencies(), options);
    ASSERT_FALSE(cut);
    EXPECT_EQ(cut.error().message, "the judge broke down");
    expect_seamless(*store, options, expected);
  }
}

TEST(Resume, AfterSigkillAtAnyMomentTheJournalIsTheSame) {
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    const std::string policy(all_policies()[seed % all_policies().size()]->name);
    const SearchOptions options = options_of(policy, seed, 25);
    const std::string expected = undisturbed(options);
    Rng rng(seed);
    for (int round = 0; round < 5; ++round) {
      const int64_t moment = 1 + rng.below(50);
      SCOPED_TRACE(fmt::format("seed {} killed at insert {}", seed, moment));
      std::string name = (std::filesystem::temp_directory_path() / "ke_sim_XXXXXX").string();
      const std::filesystem::path folder = mkdtemp(name.data());
      const std::filesystem::path file = folder / "experience.db";
      const pid_t child = fork();
      if (child == 0) {
        const auto store = *open_sqlite_store(file);
        WatchedStore deadly(*store, [&](int64_t insert) -> Result<void> {
          if (insert == moment) kill(getpid(), SIGKILL);
          return {};
        });
        World world(deadly, kFaults);
        static_cast<void>(search(world.dependencies(), options));
        _exit(3);
      }
      int status = 0;
      waitpid(child, &status, 0);
      ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << status;
      {
        const auto store = *open_sqlite_store(file);
        expect_seamless(*store, options, expected);
      }
      std::filesystem::remove_all(folder);
    }
  }
}

TEST(Resume, AFinishedRunGoesOnWithMoreSteps) {
  const auto store = make_memory_store();
  SearchOptions options = options_of("greedy", 4, 20);
  World world(*store, kFaults);
  const RunId run = search(world.dependencies(), options)->run;
  options = *run_options(world.graph, run);
  EXPECT_EQ(options.steps, 20);
  options.steps = 35;
  const auto result = resume(world.dependencies(), run, options);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->evaluated, 35) << "the run's steps in all";
  // What did not compile never reaches the judge.
  const auto unbuilt = static_cast<size_t>(result->verdicts.at(Verdict::compile_error));
  std::vector<std::string> screened = world.evaluator.screened();
  EXPECT_EQ(screened.size() + unbuilt, 35u);
  std::ranges::sort(screened);
  EXPECT_TRUE(std::ranges::adjacent_find(screened) == screened.end()) << "judged twice";
}

TEST(Resume, AnAlreadyConfirmedNodeKeepsItsFigure) {
  const auto store = make_memory_store();
  const SearchOptions options = options_of("greedy", 4, 20);
  World world(*store, kFaults);
  const auto first = search(world.dependencies(), options);
  const int64_t confirmations = world.evaluator.confirmations();
  const auto again = resume(world.dependencies(), first->run, options);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->best, first->best);
  EXPECT_EQ(world.evaluator.confirmations(), confirmations);
}

TEST(Resume, RefusesARunOfAnotherProblem) {
  const auto store = make_memory_store();
  World world(*store);
  const SearchOptions options = options_of("greedy", 4, 5);
  const RunId run = search(world.dependencies(), options)->run;
  world.problem.digest = digest_of("edited");
  EXPECT_EQ(resume(world.dependencies(), run, options).error().code, Errc::conflict);
  EXPECT_EQ(resume(world.dependencies(), RunId{99}, options).error().code, Errc::not_found);
}

TEST(Resume, StatisticsCanBeReadAsOfAStep) {
  const auto store = make_memory_store();
  World world(*store);
  const RunId run = search(world.dependencies(), options_of("mcts", 2, 30))->run;
  double visits_before = 0;
  for (const int64_t step : {5, 15, 30}) {
    double visits = 0;
    const std::vector<StatisticRow> rows = *world.graph.statistics(run, step);
    for (const StatisticRow& row : rows) {
      EXPECT_LE(row.step, step);
      if (row.name == "visits") visits += row.value;
    }
    EXPECT_GT(visits, visits_before);
    visits_before = visits;
  }
}

}  // namespace
}  // namespace ke::sim
