// SPDX-License-Identifier: Apache-2.0
#include "app/suite_report.hpp"

#include <gtest/gtest.h>

#include "base/json.hpp"

namespace ke::app {
namespace {

OptimizeReport accepted(const std::string& name, double eager, double compile) {
  OptimizeReport row;
  row.problem = name;
  row.target = "x86";
  row.verdict = "accepted";
  row.speedup_vs_eager = eager;
  row.speedup_vs_compile = compile;
  row.time_ns = 1000;
  row.floor_ns = 500;
  return row;
}

TEST(OptimizeReport, SurvivesJson) {
  OptimizeReport row = accepted("level1/19_ReLU", 2, 3);
  row.rejected["crashed"] = 2;
  row.flags = {"tie"};
  row.speedup_vs_compile.reset();
  const auto back = decode_optimize_report(encode(row));
  ASSERT_TRUE(back) << back.error().to_string();
  EXPECT_EQ(encode(*back), encode(row));
  EXPECT_EQ(*back->speedup(), 2);
}

TEST(SuiteReport, CountsFailuresWithoutAveragingThemIn) {
  OptimizeReport failed;
  failed.problem = "level1/2";
  failed.target = "x86";
  failed.verdict = "failed";
  failed.error = "it raised";
  const SuiteSummary summary = summarize({accepted("a", 2, 4), accepted("b", 8, 9), failed});
  EXPECT_EQ(summary.problems, 3);
  EXPECT_EQ(summary.accepted, 2);
  EXPECT_EQ(summary.failed, 1);
  EXPECT_DOUBLE_EQ(summary.geomean, 4);
  EXPECT_DOUBLE_EQ(summary.median, 5);
}

TEST(SuiteReport, LeavesFlaggedProblemsOutOfTheSecondHeadlineOnly) {
  OptimizeReport flagged = accepted("c", 100, 100);
  flagged.flags = {"foldable"};
  const SuiteSummary summary = summarize({accepted("a", 1, 2), flagged});
  EXPECT_DOUBLE_EQ(summary.geomean, 10);
  EXPECT_DOUBLE_EQ(summary.geomean_unflagged, 1);
}

TEST(SuiteReport, DoesNotCountATieAsSlower) {
  OptimizeReport tie = accepted("a", 0.99, 1.2);
  EXPECT_EQ(summarize({tie}).slower_eager, 1);
  tie.flags = {"tie"};
  EXPECT_EQ(summarize({tie}).slower_eager, 0);
}

TEST(SuiteReport, TakesTheLastRowOfAProblemAndRefusesBrokenLines) {
  const std::string first = dump_json(encode(accepted("a", 1, 1)));
  const std::string second = dump_json(encode(accepted("a", 2, 2)));
  const auto rows = parse_suite_results(first + "\n" + second + "\n");
  ASSERT_TRUE(rows);
  ASSERT_EQ(rows->size(), 1u);
  EXPECT_EQ(*rows->front().speedup_vs_eager, 2);
  EXPECT_EQ(parse_suite_results("{}\n").error().to_string(),
            "line 1: the result lacks the field 'problem'");
}

TEST(SuiteReport, TakesTheBestTargetOfAProblem) {
  OptimizeReport faster = accepted("level1/10_b", 3, 2.5), failed = faster;
  faster.target = "triton";
  failed.target = "other";
  failed.verdict = "wrong_output";
  const auto best = best_of_each_problem(
      {accepted("level1/10_b", 2, 2), faster, failed, accepted("level1/9_a", 1, 1)});
  ASSERT_EQ(best.size(), 2u);
  EXPECT_EQ(best[0].problem, "level1/9_a");
  EXPECT_EQ(best[1].target, "triton");
  EXPECT_EQ(best[1].verdict, "accepted");
}

TEST(SuiteReport, SaysALevelAtATimeWhatClassesWon) {
  OptimizeReport own = accepted("level1/1", 2, 2), slow = accepted("level1/2", 0.5, 0.5);
  own.kernel_class = slow.kernel_class = "own";
  own.graph_ns = 100;
  own.graph_eager_ns = 300;
  const SuiteSummary summary = summarize({own, slow});
  EXPECT_EQ(summary.classes.at("own"), 1);
  EXPECT_DOUBLE_EQ(summary.geomean_graph, 3);
  const std::string text = suite_text({own, slow});
  EXPECT_NE(text.find("level1: 2 of 2 accepted"), std::string::npos);
  EXPECT_NE(text.find("replayed graphs 3.000x (1)"), std::string::npos);
  EXPECT_EQ(text.find("library's"), std::string::npos) << "nothing is known of it";
}

TEST(SuiteReport, ComparesWithTheFastestFormOfTheLibraryThatAnyRowKnows) {
  OptimizeReport own = accepted("level1/1", 4, 3), form = accepted("level1/1", 2, 1.5);
  form.target = "triton";
  form.form_speedup = 1.5;
  const auto read = parse_suite_results(dump_json(encode(own)) + "\n" + dump_json(encode(form)));
  ASSERT_TRUE(read) << read.error().to_string();
  const auto best = best_of_each_problem(*read);
  ASSERT_EQ(best.size(), 1u);
  EXPECT_EQ(best[0].speedup_vs_library(), 2.0);
  OptimizeReport unknown = accepted("level1/2", 9, 9), slow_form = accepted("level1/3", 2, 2);
  slow_form.form_speedup = 0.5;  // eager and torch.compile are forms of the library's as well
  const SuiteSummary summary = summarize({best[0], unknown, slow_form});
  EXPECT_EQ(summary.libraries, 2);
  EXPECT_DOUBLE_EQ(summary.geomean_library, 2);
}

TEST(SuiteReport, EscapesNamesInHtml) {
  EXPECT_NE(suite_html({accepted("<b>", 1, 1)}).find("&lt;b&gt;"), std::string::npos);
}

}  // namespace
}  // namespace ke::app
