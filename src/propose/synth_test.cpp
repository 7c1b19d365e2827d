// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <set>

#include "base/json.hpp"
#include "propose/proposer.hpp"
#include "propose/testing.hpp"

namespace ke {
namespace {

// Softmax over the columns of a product: a contraction, then a reduction that may be fused in many
// ways.
constexpr const char* kProgram = R"(
tensor %0 x: float32[16, 64] input
tensor %1 w: float32[64, 32] input
tensor %2 y: float32[16, 32] intermediate
tensor %3 top: float32[16] intermediate
tensor %4 total: float32[16] intermediate
tensor %5 out: float32[16, 32] output
inputs %0, %1
stage %2[m=16, n=32] = sum[k=64] in float32: mul(load %0[i0, i2], load %1[i2, i1])
stage %3[m=16] = maximum[n=32] in float32: load %2[i0, i1]
stage %4[m=16] = sum[n=32] in float32: exp(sub(load %2[i0, i1], load %3[i0]))
stage %5[m=16, n=32] = map: div(exp(sub(load %2[i0, i1], load %3[i0])), load %4[i0])
outputs %5
)";

class Synth : public testing::Test {
 protected:
  void SetUp() override {
    Result<ir::Program> program = ir::parse_program(kProgram);
    ASSERT_TRUE(program) << program.error().to_string();
    program_ = std::move(*program);
    ASSERT_TRUE(ir::verify(program_));
    fixture_.programs = {program_};
  }

  std::optional<Proposal> propose(NodeKind kind, const std::vector<Proposal>& parents,
                                  uint64_t seed) {
    std::vector<std::string> sources, plans;
    for (const Proposal& parent : parents) {
      sources.push_back(parent.source);
      plans.push_back(parent.plan);
    }
    Rng rng(seed);
    auto proposal = synth_->propose(fixture_.context(kind, sources, plans), rng);
    EXPECT_TRUE(proposal) << proposal.error().to_string();
    return *proposal;
  }
  ir::Plan plan_of(const Proposal& proposal) {
    return *ir::decode_plan(*parse_json(proposal.plan), program_);
  }

  ir::Program program_;
  testing_support::ContextFixture fixture_;
  std::unique_ptr<Proposer> synth_ = find_proposer("synth")->make();
};

TEST_F(Synth, FirstDraftIsGreedyFusionUnderThePreferredSchedule) {
  const std::optional<Proposal> draft = propose(NodeKind::draft, {}, 1);
  ASSERT_TRUE(draft);
  const ir::Plan plan = plan_of(*draft);
  const ir::Plan greedy = ir::fuse_greedily(program_);
  ASSERT_EQ(plan.kernels.size(), greedy.kernels.size());
  for (size_t i = 0; i < plan.kernels.size(); ++i) {
    EXPECT_EQ(plan.kernels[i].stages, greedy.kernels[i].stages);
    const bool is_map = plan.kernels[i].skeleton == ir::Skeleton::map;
    const ir::Schedule preferred = is_map ? ir::Schedule{{"unroll", 2}, {"width", 8}}
                                          : ir::Schedule{{"block", 32}, {"split", 1}};
    EXPECT_EQ(plan.kernels[i].schedule, preferred) << "every decision is spelled out";
  }
}

TEST_F(Synth, LaterDraftsHaveAnotherStructure) {
  std::set<std::string> structures;
  for (int i = 0; i < 3; ++i) {
    const std::optional<Proposal> draft = propose(NodeKind::draft, {}, 1);
    ASSERT_TRUE(draft);
    ir::Plan plan = plan_of(*draft);
    for (ir::KernelPlan& kernel : plan.kernels) kernel.schedule.clear();
    EXPECT_TRUE(structures.insert(ir::print(plan)).second) << draft->note;
    fixture_.know(draft->source);
  }
}

// Whether a contraction may round its operands is the judge's to say.
TEST_F(Synth, DraftsAfterAWrongOutputRoundLeast) {
  fixture_.target.rounds = true;
  const auto terms_of = [&](const Proposal& draft) {
    for (const ir::KernelPlan& kernel : plan_of(draft).kernels) {
      const auto found = kernel.schedule.find("terms");
      if (found != kernel.schedule.end()) return found->second;
    }
    return int64_t{0};
  };
  const Proposal first = *propose(NodeKind::draft, {}, 1);
  EXPECT_EQ(terms_of(first), 1);
  fixture_.judge(first.source, Verdict::wrong_output);
  for (int later = 0; later < 4; ++later) {
    const std::optional<Proposal> draft = propose(NodeKind::draft, {}, 1);
    ASSERT_TRUE(draft);
    EXPECT_NE(terms_of(*draft), 1) << draft->note;
    if (later == 0) {
      EXPECT_EQ(terms_of(*draft), 3) << draft->note;
      ir::Plan expected = plan_of(first), second = plan_of(*draft);
      for (ir::KernelPlan& kernel : expected.kernels) kernel.schedule.erase("terms");
      for (ir::KernelPlan& kernel : second.kernels) kernel.schedule.erase("terms");
      EXPECT_EQ(ir::print(second), ir::print(expected)) << "the same plan otherwise";
    }
    fixture_.judge(draft->source, Verdict::wrong_output);
  }
}

TEST_F(Synth, DraftsBeforeAVerdictTryBothRoundingsAndAfterAnAcceptedOneDoNot) {
  fixture_.target.rounds = true;
  const Proposal first = *propose(NodeKind::draft, {}, 1);
  fixture_.know(first.source);
  EXPECT_NE(propose(NodeKind::draft, {}, 1)->note.find("rounding least"), std::string::npos);
  fixture_.judge(first.source, Verdict::accepted);
  EXPECT_EQ(propose(NodeKind::draft, {}, 1)->note.find("rounding least"), std::string::npos);
}

TEST_F(Synth, DraftsAvoidWhatTheTargetCannotPrint) {
  fixture_.target.refuses_contractions = true;
  const std::optional<Proposal> draft = propose(NodeKind::draft, {}, 1);
  ASSERT_TRUE(draft);
  EXPECT_EQ(draft->source.find("contract"), std::string::npos) << draft->source;
}

TEST_F(Synth, MutationsAreLegalNewAndNamed) {
  const Proposal parent = *propose(NodeKind::draft, {}, 1);
  fixture_.know(parent.source);
  std::set<std::string> seen;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    const std::optional<Proposal> child = propose(NodeKind::mutate, {parent}, seed);
    if (!child) break;
    EXPECT_TRUE(seen.insert(child->source).second);
    fixture_.know(child->source);
    EXPECT_TRUE(ir::verify(program_, plan_of(*child)));
    EXPECT_NE(child->note.find(" -> "), std::string::npos) << child->note;
    EXPECT_EQ(child->parents, std::vector<NodeId>{NodeId{1}});
  }
  // At least the single moves: a contraction and a reduction with four blocks and two splits each,
  // and the boundaries that may move. At most pairs of decisions beside them.
  const size_t boundaries = ir::fusion_neighbours(program_, plan_of(parent)).size();
  EXPECT_GE(seen.size(), 2 * (3 + 1) + boundaries);
  EXPECT_LE(seen.size(), 8 * 8 - 1 + boundaries);
}

TEST_F(Synth, MutationEndsWhenEverySingleMoveIsKnown) {
  const Proposal parent = *propose(NodeKind::draft, {}, 1);
  fixture_.know(parent.source);
  int children = 0;
  for (; children < 5000; ++children) {
    const std::optional<Proposal> child =
        propose(NodeKind::mutate, {parent}, static_cast<uint64_t>(children));
    if (!child) break;
    fixture_.know(child->source);
  }
  EXPECT_GT(children, 4);
  EXPECT_LT(children, 5000);
}

TEST_F(Synth, SameSeedSameChild) {
  const Proposal parent = *propose(NodeKind::draft, {}, 1);
  fixture_.know(parent.source);
  EXPECT_EQ(propose(NodeKind::mutate, {parent}, 5)->source,
            propose(NodeKind::mutate, {parent}, 5)->source);
}

TEST_F(Synth, CrossingMixesSchedulesOfBothParentsOnly) {
  const Proposal base = *propose(NodeKind::draft, {}, 1);
  ir::Plan one = plan_of(base);
  ir::Plan two = one;
  for (size_t i = 0; i < one.kernels.size(); ++i) {
    for (auto& [name, value] : one.kernels[i].schedule) value = name == "unroll" ? 1 : value;
    one.kernels[i].schedule["block"] = 16;
    one.kernels[i].schedule["split"] = 1;
    two.kernels[i].schedule["block"] = 128;
    two.kernels[i].schedule["split"] = 2;
  }
  const auto as_parent = [&](const ir::Plan& plan) {
    return Proposal{.source = ir::print(plan), .plan = dump_json(ir::encode(plan))};
  };
  const std::optional<Proposal> child =
      propose(NodeKind::cross, {as_parent(one), as_parent(two)}, 3);
  ASSERT_TRUE(child);
  EXPECT_EQ(child->parents.size(), 2u);
  for (const ir::KernelPlan& kernel : plan_of(*child).kernels) {
    if (kernel.skeleton == ir::Skeleton::map) continue;
    EXPECT_TRUE(kernel.schedule.at("block") == 16 || kernel.schedule.at("block") == 128);
  }
}

TEST_F(Synth, HasNoIdeaWithoutAProgramOrAPlan) {
  EXPECT_FALSE(propose(NodeKind::mutate, {Proposal{.source = "int a;"}}, 1).has_value());
  EXPECT_FALSE(
      propose(NodeKind::mutate, {Proposal{.source = "a", .plan = "{\"bad\":1}"}}, 1).has_value());
  ir::Plan partial = ir::fuse_greedily(program_);
  partial.kernels.pop_back();
  const Proposal lost{.source = "a", .plan = dump_json(ir::encode(partial))};
  EXPECT_FALSE(propose(NodeKind::mutate, {lost}, 1).has_value()) << "computes no output";
  fixture_.programs.clear();
  EXPECT_FALSE(propose(NodeKind::draft, {}, 1).has_value());
}

// --- Several shape cases ------------------------------------------------------------------------

// The same operator for 1 row, and for none.
class SynthOfCases : public Synth {
 protected:
  void SetUp() override {
    Synth::SetUp();
    for (const char* rows : {"1", "0"}) {
      std::string text = kProgram;
      for (const std::string from : {"[16", "m=16"}) {
        const std::string to = from.substr(0, from.size() - 2) + rows;
        for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at)) {
          text.replace(at, from.size(), to);
        }
      }
      Result<ir::Program> program = ir::parse_program(text);
      ASSERT_TRUE(program) << program.error().to_string() << text;
      fixture_.programs.push_back(std::move(*program));
    }
  }
  Json plans_of(const Proposal& proposal) { return *parse_json(proposal.plan); }
  static int differing(const Json& a, const Json& b) {
    int count = 0;
    for (size_t i = 0; i < a.size(); ++i) count += a[i] != b[i];
    return count;
  }
};

TEST_F(SynthOfCases, DraftsOnePlanForEachCaseInOneSource) {
  const std::optional<Proposal> draft = propose(NodeKind::draft, {}, 1);
  ASSERT_TRUE(draft);
  const Json plans = plans_of(*draft);
  ASSERT_TRUE(plans.is_array());
  ASSERT_EQ(plans.size(), 3u);
  for (size_t i = 0; i < plans.size(); ++i) {
    EXPECT_TRUE(ir::decode_plan(plans[i], fixture_.programs[i])) << i;
  }
  size_t ends = 0;
  for (size_t at = draft->source.find("end of case"); at != std::string::npos;
       at = draft->source.find("end of case", at + 1)) {
    ++ends;
  }
  EXPECT_EQ(ends, 3u) << draft->source;
}

TEST_F(SynthOfCases, MutationsAndLaterDraftsChangeThePlanOfOneCaseThatComputes) {
  const Proposal parent = *propose(NodeKind::draft, {}, 1);
  fixture_.know(parent.source);
  const std::optional<Proposal> later = propose(NodeKind::draft, {}, 1);
  ASSERT_TRUE(later);
  EXPECT_EQ(differing(plans_of(*later), plans_of(parent)), 1) << later->note;
  std::set<std::string> named;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    const std::optional<Proposal> child = propose(NodeKind::mutate, {parent}, seed);
    ASSERT_TRUE(child);
    fixture_.know(child->source);
    EXPECT_EQ(differing(plans_of(*child), plans_of(parent)), 1) << child->note;
    ASSERT_TRUE(child->note.starts_with("case ")) << child->note;
    named.insert(child->note.substr(0, 7));
  }
  EXPECT_EQ(named, (std::set<std::string>{"case 0:", "case 1:"})) << "case 2 has no rows";
}

TEST_F(SynthOfCases, CrossingTakesWholeCasesOfBothParents) {
  const Proposal base = *propose(NodeKind::draft, {}, 1);
  Json one = plans_of(base), two = one;
  for (Json* each : {&one, &two}) {
    for (Json& plan : *each) {
      for (Json& kernel : plan["kernels"]) {
        if (kernel["schedule"].contains("block")) {
          kernel["schedule"]["block"] = each == &one ? 16 : 128;
        }
      }
    }
  }
  const Proposal first{.source = "one", .plan = dump_json(one)};
  const Proposal second{.source = "two", .plan = dump_json(two)};
  bool whole = false;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const std::optional<Proposal> child = propose(NodeKind::cross, {first, second}, seed);
    ASSERT_TRUE(child);
    const Json plans = plans_of(*child);
    bool mixed = false;
    for (size_t i = 0; i < plans.size(); ++i) mixed |= plans[i] != one[i] && plans[i] != two[i];
    whole |= !mixed && differing(plans, one) > 0 && differing(plans, two) > 0;
  }
  EXPECT_TRUE(whole);
}

TEST_F(SynthOfCases, APlanOfOneCaseIsNoGenomeOfSeveral) {
  Proposal parent = *propose(NodeKind::draft, {}, 1);
  parent.plan = dump_json(plans_of(parent)[0]);
  EXPECT_FALSE(propose(NodeKind::mutate, {parent}, 1).has_value());
}

}  // namespace
}  // namespace ke
