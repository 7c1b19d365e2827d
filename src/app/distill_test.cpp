// SPDX-License-Identifier: Apache-2.0
#include "app/distill.hpp"

#include <gtest/gtest.h>

#include "base/json.hpp"
#include "ir/plan.hpp"
#include "os/file_system.hpp"

namespace ke::app {
namespace {

constexpr const char* kProgram = R"(
tensor %0 x: float32[64, 128] input
tensor %1 y: float32[64, 128] output
inputs %0
stage %1[i0=64, i1=128] = map: tanh(load %0[i0, i1])  # aten.tanh.default
outputs %1
)";

class Distill : public testing::Test {
 protected:
  void SetUp() override {
    auto program = ir::parse_program(kProgram);
    ASSERT_TRUE(program) << program.error().to_string();
    program_ = std::move(*program);
    run_ = add_run();
  }
  RunId add_run() {
    const Scope scope{*graph_.add_problem({.name = "tanh", .digest = digest_of("p")}), "x86",
                      "g++ 12"};
    return *graph_.add_run({.scope = scope, .config = "{}"});
  }
  NodeId add(const ir::Schedule& schedule, double speedup, std::vector<NodeId> parents = {},
             double noise = 0.01, const std::string& effort = "screen") {
    ir::Plan plan = ir::fuse_greedily(program_);
    plan.kernels.at(0).schedule = schedule;
    const NodeId node = *graph_.add_node({.run = run_,
                                          .step = ++step_,
                                          .parents = std::move(parents),
                                          .proposer = "synth",
                                          .source = "s" + std::to_string(step_),
                                          .plan = dump_json(encode(plan))});
    evaluate(node, speedup, noise, effort);
    return node;
  }
  void evaluate(NodeId node, double speedup, double noise, const std::string& effort) {
    Evaluation evaluation{.verdict = Verdict::accepted, .confirmed = effort == "confirm"};
    evaluation.measurement = Measurement{.candidate_ns = {100},
                                         .time_ns = 100,
                                         .eager_median_ns = int64_t(100 * speedup),
                                         .speedup = speedup,
                                         .speedup_low = speedup * (1 - noise),
                                         .speedup_high = speedup * (1 + noise)};
    ASSERT_TRUE(graph_.add_evaluation(node, evaluation, effort));
  }
  std::vector<knowledge::Skill> lessons() {
    auto found = distill(graph_, run_, program_);
    EXPECT_TRUE(found) << found.error().to_string();
    return found ? std::move(*found) : std::vector<knowledge::Skill>();
  }

  std::unique_ptr<Store> store_ = make_memory_store();
  ExperienceGraph graph_{*store_};
  ir::Program program_;
  RunId run_;
  int64_t step_ = 0;
};

TEST_F(Distill, LearnsFromAChangeThatGainedMoreThanTheNoise) {
  const NodeId parent = add({{"unroll", 1}, {"width", 8}}, 2);
  const NodeId child = add({{"unroll", 4}, {"width", 8}}, 3, {parent});
  const auto skills = lessons();
  ASSERT_EQ(skills.size(), 1u);
  EXPECT_EQ(skills[0].target, "x86");
  EXPECT_EQ(skills[0].skeleton, "map");
  EXPECT_EQ(skills[0].operations, std::vector<std::string>{"tanh"});
  EXPECT_EQ(skills[0].changes,
            (std::vector<knowledge::DecisionChange>{{"unroll", 1, 4}}));
  ASSERT_EQ(skills[0].evidence.size(), 1u);
  const knowledge::SkillEvidence& evidence = skills[0].evidence[0];
  EXPECT_EQ(evidence.from, parent.value);
  EXPECT_EQ(evidence.to, child.value);
  EXPECT_NEAR(evidence.gain, 1.5, 1e-9);
  EXPECT_NEAR(evidence.low, 1.5 * 0.99 / 1.01, 1e-9);
  EXPECT_NEAR(evidence.high, 1.5 * 1.01 / 0.99, 1e-9);
  EXPECT_FALSE(evidence.confirmed);
}

TEST_F(Distill, TurnsALossAround) {
  const NodeId parent = add({{"width", 16}}, 3);
  const NodeId child = add({{"width", 8}}, 2, {parent});
  const auto skills = lessons();
  ASSERT_EQ(skills.size(), 1u);
  EXPECT_EQ(skills[0].changes, (std::vector<knowledge::DecisionChange>{{"width", 8, 16}}));
  EXPECT_EQ(skills[0].evidence[0].from, child.value);
  EXPECT_EQ(skills[0].evidence[0].to, parent.value);
}

TEST_F(Distill, LearnsNothingWithinTheNoiseOrFromManyChanges) {
  const NodeId parent = add({{"a", 1}, {"b", 1}, {"c", 1}}, 2, {}, 0.05);
  add({{"a", 2}, {"b", 1}, {"c", 1}}, 2.1, {parent}, 0.05);
  add({{"a", 2}, {"b", 2}, {"c", 2}}, 4, {parent});
  add({{"a", 2}}, 4, {parent});
  EXPECT_TRUE(lessons().empty());
}

TEST_F(Distill, DropsAChangeThatGainedHereAndLostThere) {
  const NodeId a = add({{"a", 1}, {"b", 1}}, 2);
  add({{"a", 2}, {"b", 1}}, 3, {a});
  const NodeId c = add({{"a", 1}, {"b", 2}}, 3);
  add({{"a", 2}, {"b", 2}}, 2, {c});
  EXPECT_TRUE(lessons().empty());
}

TEST_F(Distill, GathersEqualLessonsAndPrefersConfirmedFigures) {
  const NodeId a = add({{"a", 1}, {"b", 1}}, 2);
  const NodeId b = add({{"a", 2}, {"b", 1}}, 3, {a});
  const NodeId c = add({{"a", 1}, {"b", 2}}, 2);
  const NodeId d = add({{"a", 2}, {"b", 2}}, 3, {c});
  evaluate(a, 2, 0.01, "confirm");
  evaluate(b, 2.5, 0.01, "confirm");
  const auto skills = lessons();
  ASSERT_EQ(skills.size(), 1u);
  ASSERT_EQ(skills[0].evidence.size(), 2u);
  EXPECT_TRUE(skills[0].evidence[0].confirmed);
  EXPECT_NEAR(skills[0].evidence[0].gain, 1.25, 1e-9);
  EXPECT_EQ(skills[0].evidence[1].to, d.value);
  EXPECT_FALSE(skills[0].evidence[1].confirmed);
}

TEST_F(Distill, WritesProposalsOnceAndKeepsAPersonsDecision) {
  const auto folder = os::TemporaryDirectory::create();
  ASSERT_TRUE(folder);
  const NodeId parent = add({{"a", 1}}, 2);
  add({{"a", 2}}, 3, {parent});
  EXPECT_EQ(propose_skills(lessons(), folder->path()).value(), 1);
  EXPECT_EQ(propose_skills(lessons(), folder->path()).value(), 0);

  const std::string path = knowledge::skill_path(knowledge::skill_id(lessons()[0]));
  const auto read = [&] {
    return *knowledge::parse_document(path, *os::read_file(folder->path() / path, 100'000), "");
  };
  EXPECT_EQ(read().skill->status, knowledge::SkillStatus::proposed);
  EXPECT_EQ(read().skill->evidence.size(), 1u);
  ASSERT_TRUE(os::write_file_atomically(
      folder->path() / path, with_status(read(), knowledge::SkillStatus::rejected)));

  run_ = add_run();
  step_ = 0;
  const NodeId again = add({{"a", 1}}, 2);
  add({{"a", 2}}, 3, {again});
  EXPECT_EQ(propose_skills(lessons(), folder->path()).value(), 0);
  EXPECT_EQ(read().skill->status, knowledge::SkillStatus::rejected);
  EXPECT_EQ(read().skill->evidence.size(), 2u);
}

}  // namespace
}  // namespace ke::app
