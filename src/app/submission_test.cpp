// SPDX-License-Identifier: Apache-2.0
//
// The desk over a store in memory and a judge that reads verdicts out of sources.
#include "app/submission.hpp"

#include <gtest/gtest.h>

#include "base/json.hpp"
#include "search/search.hpp"
#include "store/store.hpp"

namespace ke::app {
namespace {

// "wrong" is wrong, "broken" does not build; "fast" takes 100 ns and everything else 200, against
// 400 of eager PyTorch.
class FakeJudge final : public Evaluator {
 public:
  Result<Artifact> build(const std::string& source) override {
    if (fails) return Error{Errc::unavailable, "the compiler is gone"};
    Artifact artifact{.built_path = source, .failure = {}, .build_ms = 5};
    if (source.find("broken") != std::string::npos) {
      artifact.failure = Evaluation{.verdict = Verdict::compile_error,
                                    .detail = "it does not compile",
                                    .diagnostics = "/tmp/room/kernel.cpp:3: error"};
    }
    return artifact;
  }
  Result<Evaluation> judge(const Artifact& artifact, const JudgeOptions& options) override {
    asked.push_back(options);
    Evaluation evaluation;
    evaluation.verdict = Verdict::wrong_output;
    if (artifact.built_path.find("wrong") != std::string::npos) return evaluation;
    evaluation.verdict = Verdict::accepted;
    evaluation.confirmed = options.effort == Effort::confirm;
    if (!options.measure) return evaluation;
    Measurement measured;
    measured.time_ns = artifact.built_path.find("fast") != std::string::npos ? 100 : 200;
    measured.candidate_ns = {measured.time_ns};
    measured.eager_ns = {400};
    measured.eager_median_ns = 400;
    measured.speedup = 400.0 / static_cast<double>(measured.time_ns);
    evaluation.measurement = measured;
    return evaluation;
  }
  Result<std::vector<std::string>> admission_flags() override { return std::vector<std::string>(); }
  int64_t floor_ns() const override { return 10; }

  bool fails = false;
  std::vector<JudgeOptions> asked;
};

class Desk : public ::testing::Test {
 protected:
  Scope scope(const char* problem, const char* target = "x", const char* toolchain = "1") {
    return {*graph_.add_problem({.name = problem, .path = {}, .digest = digest_of(problem)}),
            target, toolchain};
  }
  SubmissionDesk desk(Scope at) {
    return SubmissionDesk({graph_, judge_, clock_, std::move(at), "{}", {}});
  }
  NodeId submit(SubmissionDesk& to, const char* source, NodeId parent = {}) {
    return to.submit({source, parent, ""})->node;
  }

  std::unique_ptr<Store> store_ = make_memory_store();
  ExperienceGraph graph_{*store_};
  FakeJudge judge_;
  os::FakeClock clock_;
  SubmissionDesk desk_ = desk(scope("relu"));
};

TEST_F(Desk, RecordsWhatIsSubmittedWithItsParentAndItsEvaluation) {
  const auto first = desk_.submit({"plain", {}, "as it is"});
  ASSERT_TRUE(first) << first.error().to_string();
  const auto second = desk_.submit({"fast", first->node, "vectors"});
  ASSERT_TRUE(second) << second.error().to_string();
  const NodeRow node = *graph_.node(second->node);
  EXPECT_EQ(node.parents, std::vector<NodeId>{first->node});
  EXPECT_EQ(node.kind, NodeKind::mutate);
  EXPECT_EQ(node.proposer, "mcp");
  EXPECT_EQ(node.note, "vectors");
  EXPECT_EQ(node.step, 2);
  EXPECT_EQ(graph_.node(first->node)->kind, NodeKind::draft);
  EXPECT_EQ(graph_.node(first->node)->run, node.run);
  EXPECT_EQ(graph_.verdict_of(second->node)->value().evaluation.verdict, Verdict::accepted);
  EXPECT_EQ(judge_.asked.back().effort, Effort::screen);
  EXPECT_EQ(judge_.asked.back().best_ns, 200);
}

TEST_F(Desk, RecordsRejectedKernelsToo) {
  for (const char* source : {"wrong", "broken"}) {
    const auto judged = desk_.submit({source, {}, ""});
    ASSERT_TRUE(judged);
    EXPECT_TRUE(judged->node);
    EXPECT_NE(judged->evaluation.verdict, Verdict::accepted);
  }
  EXPECT_FALSE(desk_.best()->has_value());
}

TEST_F(Desk, AnswersAKnownKernelFromTheGraph) {
  const NodeId first = submit(desk_, "int plain;");
  const size_t judged = judge_.asked.size();
  const auto again = desk_.submit({"int  plain; // another layout", {}, ""});
  ASSERT_TRUE(again);
  EXPECT_TRUE(again->known);
  EXPECT_EQ(again->node, first);
  EXPECT_EQ(judge_.asked.size(), judged);
  SubmissionDesk later = desk(scope("relu"));
  EXPECT_TRUE(later.submit({"int plain;", {}, ""})->known);
  SubmissionDesk newer = desk(scope("relu", "x", "2"));
  EXPECT_FALSE(newer.submit({"int plain;", {}, ""})->known);
}

TEST_F(Desk, RefusesAWrongParent) {
  SubmissionDesk other = desk(scope("softmax"));
  const NodeId foreign = submit(other, "plain");
  SubmissionDesk elsewhere = desk(scope("relu", "y"));
  const NodeId far = submit(elsewhere, "plain");
  struct Case {
    NodeId parent;
    const char* word;
  } cases[] = {{{99}, "there is no node 99"}, {foreign, "another problem"}, {far, "for y"}};
  for (const Case& one : cases) {
    const auto refused = desk_.submit({"fast", one.parent, ""});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Errc::invalid);
    EXPECT_NE(refused.error().message.find(one.word), std::string::npos) << refused.error().message;
  }
  // Of the same problem under another toolchain: its time says nothing here, its source does.
  SubmissionDesk older = desk(scope("relu", "x", "0"));
  EXPECT_TRUE(desk_.submit({"fast", submit(older, "plain"), ""}));
}

TEST_F(Desk, RefusesWhatIsNoSourceOrNoNote) {
  const std::string huge(static_cast<size_t>(Limits().source_bytes_max) + 1, 'x');
  for (const std::string& source :
       {std::string(), std::string(" // nothing\n"), std::string("a\0b", 3), huge}) {
    for (const auto& tried : {desk_.submit({source, {}, ""}), desk_.verify(source),
                              desk_.bench(source)}) {
      ASSERT_FALSE(tried);
      EXPECT_EQ(tried.error().code, Errc::invalid);
    }
    EXPECT_FALSE(desk_.profile(source));
  }
  for (const std::string& note : {std::string("two\nlines"), std::string(401, 'x')}) {
    EXPECT_FALSE(desk_.submit({"plain", {}, note}));
  }
  EXPECT_TRUE(graph_.runs()->empty());
}

TEST_F(Desk, RecordsNothingWhenTheSystemFails) {
  judge_.fails = true;
  EXPECT_FALSE(desk_.submit({"plain", {}, ""}));
  EXPECT_TRUE(graph_.runs()->empty());
  judge_.fails = false;
  EXPECT_FALSE(desk_.submit({"plain", {}, ""})->known);
}

TEST_F(Desk, VerifiesWithoutTimesValuesOrRows) {
  const auto judged = desk_.verify("plain");
  ASSERT_TRUE(judged);
  EXPECT_FALSE(judged->node);
  EXPECT_EQ(judge_.asked.back().effort, Effort::full);
  EXPECT_FALSE(judge_.asked.back().measure);
  EXPECT_FALSE(judge_.asked.back().tell_values);
  EXPECT_TRUE(graph_.runs()->empty());
}

TEST_F(Desk, ABenchConfirmsTheNodeOfTheKernel) {
  const NodeId plain = submit(desk_, "plain");
  EXPECT_FALSE(desk_.best()->value().evaluation.confirmed);
  const auto benched = desk_.bench("plain // the same");
  ASSERT_TRUE(benched);
  EXPECT_EQ(benched->node, plain);
  EXPECT_EQ(judge_.asked.back().effort, Effort::confirm);
  const auto best = desk_.best();
  EXPECT_EQ(best->value().node, plain);
  EXPECT_TRUE(best->value().evaluation.confirmed);
  EXPECT_FALSE(desk_.bench("fast")->node);
}

TEST_F(Desk, TheBestIsTheFastestWhoeverMadeIt) {
  submit(desk_, "plain");
  SubmissionDesk other = desk(scope("relu"));
  const NodeId fast = submit(other, "fast");
  EXPECT_EQ(desk_.best()->value().node, fast);
}

TEST_F(Desk, ItsRunEndsAndIsNoSearch) {
  submit(desk_, "plain");
  ASSERT_TRUE(desk_.close());
  const RunRow run = graph_.runs()->front();
  EXPECT_EQ(run.end_reason, "closed");
  const auto options = run_options(graph_, run.id);
  ASSERT_FALSE(options);
  EXPECT_EQ(options.error().code, Errc::conflict);
  submit(desk_, "fast");
  EXPECT_EQ(graph_.runs()->size(), 2u);
}

TEST(Judged, SaysWhatItsFiguresAreWorth) {
  Judged judged{.node = {4}, .known = false, .effort = "screen", .evaluation = {}};
  judged.evaluation.diagnostics = "/tmp/room/kernel.cpp:3: error";
  EXPECT_EQ(encode(judged).at("diagnostics"), "kernel.cpp:3: error");
  EXPECT_EQ(encode(judged).at("time_ns"), nullptr);
  EXPECT_EQ(encode(judged).at("note"), "It is rejected.");
  judged.evaluation.verdict = Verdict::accepted;
  judged.evaluation.measurement = Measurement{.candidate_ns = {200}, .time_ns = 200};
  judged.evaluation.measurement->eager_median_ns = 400;
  Json json = encode(judged);
  EXPECT_EQ(json.at("confirmed"), false);
  EXPECT_NE(json.at("note").get<std::string>().find("unconfirmed"), std::string::npos);
  EXPECT_EQ(json.at("speedup_vs_eager"), 2.0);
  EXPECT_EQ(dump_json(json).find("candidate_ns"), std::string::npos);
  judged.evaluation.confirmed = true;
  json = encode(judged);
  EXPECT_EQ(json.at("confirmed"), true);
  EXPECT_NE(json.at("note").get<std::string>().find("times are confirmed"), std::string::npos);
}

}  // namespace
}  // namespace ke::app
