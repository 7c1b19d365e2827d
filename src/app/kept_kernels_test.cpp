// SPDX-License-Identifier: Apache-2.0
#include "app/kept_kernels.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/json.hpp"
#include "os/file_system.hpp"
#include "store/store.hpp"

namespace ke::app {
namespace {

KeptKernel kept(const char* problem, const char* target, double fitness, const char* source,
                const char* of_class = "own", bool confirmed = false) {
  return {.problem = problem,
          .problem_digest = digest_of(problem),
          .target = target,
          .kernel_class = of_class,
          .proposer = "synth",
          .plan = R"({"a":"line\nbreak"})",
          .source = source,
          .fitness = fitness,
          .confirmed = confirmed};
}

std::vector<std::string> sources(const std::vector<KeptKernel>& kernels) {
  std::vector<std::string> found;
  for (const KeptKernel& kernel : kernels) found.push_back(kernel.source);
  return found;
}

TEST(KeptKernels, ComeBackFromTheirText) {
  const KeptKernel kernel = kept("level1/1", "x", 1.5, "line\nof \"code\" \xc3\xa9");
  const std::string line = dump_json(encode(kernel)) + "\n";
  const auto read = parse_kept_kernels(line + "\n" + line + line.substr(0, 20));
  ASSERT_TRUE(read) << read.error().to_string();
  ASSERT_EQ(read->size(), 2u);
  EXPECT_EQ(encode(read->at(1)), encode(kernel));
}

TEST(KeptKernels, RefuseWhatIsNone) {
  EXPECT_EQ(parse_kept_kernels("{}\n").error().to_string(),
            "line 1: a kept kernel lacks the field 'problem'");
  Json wrong = encode(kept("p", "x", 1, "s"));
  wrong["problem_digest"] = "abc";
  EXPECT_FALSE(parse_kept_kernels("\n" + dump_json(wrong) + "\n"));
  EXPECT_FALSE(parse_kept_kernels("not json\n"));
}

TEST(KeptKernels, AreTheBestOfEachProblemAndTargetWithTheLibrarysBest) {
  const auto best = best_kernels({kept("b", "x", 9, "nine"), kept("a", "x", 2, "two"),
                                  kept("a", "x", 3, "three"), kept("a", "x", 3, "three"),
                                  kept("a", "x", 1, "one", "own", true), kept("a", "y", 1, "other"),
                                  kept("a", "x", 0.5, "slow form", "library"),
                                  kept("a", "x", 0.7, "form", "library")},
                                 2);
  EXPECT_EQ(sources(best),
            (std::vector<std::string>{"one", "three", "other", "form", "nine"}));
}

TEST(KeptKernels, OfOneProblemGoToTheTargetOfTheBest) {
  const std::vector<KeptKernel> all = {kept("a", "x", 2, "x2"), kept("a", "y", 3, "y3"),
                                       kept("a", "x", 1, "x1"), kept("b", "x", 9, "other")};
  EXPECT_EQ(sources(kernels_for(all, "a", "x", false)), (std::vector<std::string>{"x2", "x1"}));
  EXPECT_TRUE(kernels_for(all, "a", "x", true).empty());
  EXPECT_EQ(sources(kernels_for(all, "a", "y", true)), std::vector<std::string>{"y3"});
  EXPECT_TRUE(kernels_for(all, "c", "y", false).empty());
}

class Graph : public ::testing::Test {
 protected:
  RunId run(const char* problem) {
    const ProblemId id =
        *graph_.add_problem({.name = problem, .path = {}, .digest = digest_of(problem)});
    return *graph_.add_run({.scope = {id, "x", "1"}, .config = "{}"});
  }
  void node(RunId run, const char* source, double speedup, const char* of_class = "own") {
    const NodeId id = *graph_.add_node(
        {.run = run, .step = ++step_, .proposer = "synth", .source = source, .plan = "{}"});
    Evaluation evaluation;
    evaluation.verdict = speedup > 0 ? Verdict::accepted : Verdict::wrong_output;
    evaluation.kernel_class = of_class;
    if (speedup > 0) {
      Measurement measured;
      measured.time_ns = 100;
      measured.eager_ns = {400};
      measured.eager_median_ns = 400;
      measured.candidate_ns = {100};
      measured.speedup = speedup;
      evaluation.measurement = measured;
    }
    ASSERT_TRUE(graph_.add_evaluation(id, evaluation, "screen"));
  }
  std::unique_ptr<Store> store_ = make_memory_store();
  ExperienceGraph graph_{*store_};
  int64_t step_ = 0;
};

TEST_F(Graph, GivesItsAcceptedOnes) {
  const RunId first = run("a");
  node(first, "wrong", 0);
  for (const double speedup : {1.0, 3.0, 2.0}) {
    node(first, fmt::format("s{}", speedup).c_str(), speedup);
  }
  node(first, "form", 0.5, "library");
  EXPECT_EQ(sources(*kernels_of(graph_, 1)), (std::vector<std::string>{"s3", "form"}));
}

TEST_F(Graph, AddsToWhatAFileHolds) {
  const auto folder = *os::TemporaryDirectory::create("ke-kept");
  const std::string file = folder.path() / "kept.jsonl";
  const auto before = kept("a", "x", 2.5, "before", "own"), other = kept("z", "x", 1, "other");
  ASSERT_TRUE(os::write_file_atomically(
      file, dump_json(encode(before)) + "\n" + dump_json(encode(other)) + "\n"));
  const RunId one = run("a");
  node(one, "slower", 2);
  node(one, "faster", 3);
  EXPECT_EQ(*keep_kernels(graph_, file, 1), 2);
  EXPECT_EQ(sources(*read_kept_kernels(file)), (std::vector<std::string>{"faster", "other"}));
}

}  // namespace
}  // namespace ke::app
