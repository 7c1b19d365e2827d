// SPDX-License-Identifier: Apache-2.0
#include "graph/graph.hpp"

#include <gtest/gtest.h>

#include "base/json.hpp"

namespace ke {
namespace {

class Graph : public testing::Test {
 protected:
  void SetUp() override {
    scope_ = Scope{*graph_.add_problem({.name = "level1/19_ReLU", .digest = digest_of("p")}), "x86",
                   "g++ 12"};
    run_ = add_run();
  }
  RunId add_run() { return *graph_.add_run({.scope = scope_, .config = "{\"steps\":3}"}); }
  NodeId add(RunId run, int64_t step, const std::string& source, std::vector<NodeId> parents = {}) {
    return *graph_.add_node({.run = run,
                             .step = step,
                             .parents = std::move(parents),
                             .proposer = "synth",
                             .source = source,
                             .note = "note " + source});
  }
  static Evaluation accepted(double speedup, bool confirmed = false) {
    Evaluation evaluation{.verdict = Verdict::accepted, .confirmed = confirmed};
    evaluation.measurement = Measurement{.candidate_ns = {100}, .time_ns = 100, .speedup = speedup};
    return evaluation;
  }
  static Evaluation rejected(bool confirmed = false) {
    return {.verdict = Verdict::wrong_output, .detail = "off by 3 budgets", .confirmed = confirmed};
  }
  static std::vector<NodeId> nodes_of(const std::vector<RankedNode>& ranked) {
    std::vector<NodeId> nodes;
    for (const RankedNode& one : ranked) nodes.push_back(one.node);
    return nodes;
  }

  std::unique_ptr<Store> store_ = make_memory_store();
  ExperienceGraph graph_{*store_};
  Scope scope_;
  RunId run_;
};

TEST_F(Graph, RanksDistinctAcceptedNodesAndForgetsThoseThatFailConfirmation) {
  const NodeId a = add(run_, 1, "a");
  const NodeId b = add(run_, 2, "b");
  const NodeId same = add(run_, 3, "b // again");
  const NodeId fluke = add(run_, 4, "c");
  const NodeId bad = add(run_, 5, "d");
  *graph_.add_evaluation(a, accepted(1.5), "screen");
  *graph_.add_evaluation(b, accepted(2.0), "screen");
  *graph_.add_evaluation(same, accepted(1.9), "screen");
  *graph_.add_evaluation(fluke, accepted(9.0), "screen");
  *graph_.add_evaluation(fluke, rejected(true), "confirm");
  *graph_.add_evaluation(bad, rejected(), "screen");
  EXPECT_EQ(nodes_of(*graph_.best_of_run(run_, 5)), (std::vector{b, a}));
  EXPECT_EQ(nodes_of(*graph_.best_of_scope(scope_, 1)), (std::vector{b}));
  *graph_.add_evaluation(b, accepted(1.2, true), "confirm");
  const std::vector<RankedNode> ranked = *graph_.best_of_run(run_, 5);
  EXPECT_EQ(nodes_of(ranked), (std::vector{same, a})) << "b's confirmed figure is what counts";
}

TEST_F(Graph, FindsAnEqualKernelAcrossRunsOfItsScopeOnly) {
  const NodeId a = add(run_, 1, "int a; // first");
  const EvaluationId original = *graph_.add_evaluation(a, accepted(1.5), "screen");
  const RunId later = add_run();
  const NodeId copy = add(later, 1, "int  a;");
  *graph_.add_evaluation(copy, accepted(1.5), "screen", original);
  const Digest digest = graph_.node(copy)->normalised_digest;
  const auto found = *graph_.find_duplicate(scope_, digest);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->id, original);
  Scope other = scope_;
  other.toolchain = "clang 14";
  EXPECT_FALSE(graph_.find_duplicate(other, digest)->has_value());
  EXPECT_FALSE(graph_.find_duplicate(scope_, digest_of("none"))->has_value());
}

TEST_F(Graph, LineageHoldsEachAncestorOnceNewestFirst) {
  const NodeId a = add(run_, 1, "a");
  const NodeId b = add(run_, 2, "b", {a});
  const NodeId c = add(run_, 3, "c", {a});
  const NodeId d = add(run_, 4, "d", {c, b});
  add(run_, 5, "e", {a});
  std::vector<NodeId> ids;
  const std::vector<NodeRow> lineage = *graph_.lineage(d);
  for (const NodeRow& node : lineage) ids.push_back(node.id);
  EXPECT_EQ(ids, (std::vector{d, c, b, a}));
  EXPECT_EQ(graph_.children(a)->size(), 3u);
}

TEST_F(Graph, StatisticsAreThoseOfTheAskedStep) {
  const NodeId a = add(run_, 1, "a");
  ASSERT_TRUE(graph_.add_statistics(run_, std::vector<StatisticRow>{{1, a, "visits", 1}}));
  ASSERT_TRUE(graph_.add_statistics(run_, std::vector<StatisticRow>{{3, a, "visits", 2}}));
  EXPECT_EQ(*graph_.statistics(run_, 2), (std::vector<StatisticRow>{{1, a, "visits", 1}}));
  EXPECT_EQ(*graph_.statistics(run_), (std::vector<StatisticRow>{{3, a, "visits", 2}}));
}

TEST_F(Graph, NamesWhatItDoesNotFind) {
  EXPECT_EQ(graph_.node(NodeId{42}).error().message,
            "there is no node 42; `kernelevolve graph ls` lists them");
  EXPECT_EQ(graph_.run(RunId{42}).error().code, Errc::not_found);
  EXPECT_EQ(graph_.problem(ProblemId{42}).error().code, Errc::not_found);
}

TEST_F(Graph, ExportHoldsEveryRow) {
  const NodeId a = add(run_, 1, "a");
  const NodeId b = add(run_, 2, "b", {a});
  *graph_.add_evaluation(a, accepted(1.5), "screen");
  ASSERT_TRUE(graph_.add_statistics(run_, std::vector<StatisticRow>{{1, a, "visits", 1}}));
  const Json json = *export_run(graph_, run_);
  EXPECT_EQ(json["problem"], "level1/19_ReLU");
  EXPECT_EQ(json["config"]["steps"], 3);
  ASSERT_EQ(json["nodes"].size(), 2u);
  EXPECT_EQ(json["nodes"][0]["evaluations"][0]["evaluation"]["verdict"], "accepted");
  EXPECT_EQ(json["nodes"][1]["parents"], Json::array({a.value}));
  EXPECT_EQ(json["nodes"][1]["node"], b.value);
  EXPECT_EQ(json["statistics"][0]["name"], "visits");
  int lines = 0;
  ASSERT_TRUE(export_run_lines(graph_, run_, [&](std::string_view line) {
    EXPECT_TRUE(parse_json(line).has_value());
    ++lines;
  }));
  EXPECT_EQ(lines, 4);
}

TEST_F(Graph, TextNamesNodesVerdictsAndOrigins) {
  const NodeId a = add(run_, 1, "int a;");
  const NodeId b = add(run_, 2, "int b;", {a});
  *graph_.add_evaluation(a, rejected(), "screen");
  *graph_.add_evaluation(b, accepted(1.25, true), "confirm");
  EXPECT_NE(list_text(graph_)->find("1.250x"), std::string::npos) << *list_text(graph_);
  const std::string shown = *show_text(graph_, a);
  EXPECT_NE(shown.find("wrong_output"), std::string::npos) << shown;
  EXPECT_NE(shown.find("off by 3 budgets"), std::string::npos) << shown;
  EXPECT_NE(shown.find("\nint a;\n"), std::string::npos) << shown;
  const std::string lineage = *lineage_text(graph_, b);
  EXPECT_EQ(std::count(lineage.begin(), lineage.end(), '\n'), 2) << lineage;
  EXPECT_NE(lineage.find("1.250x (confirmed)"), std::string::npos) << lineage;
}

}  // namespace
}  // namespace ke
