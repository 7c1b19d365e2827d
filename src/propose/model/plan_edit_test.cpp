// SPDX-License-Identifier: Apache-2.0
#include "propose/model/plan_edit.hpp"

#include <gtest/gtest.h>

#include "base/rng.hpp"
#include "propose/model/testing.hpp"

namespace ke::model {
namespace {

class PlanEdit : public testing_support::History {
 protected:
  // The product apart from the softmax, whose three stages are one kernel.
  PlanEdit() {
    base_.kernels = {{ir::Skeleton::contract, {ir::StageId{0}}, {{"block", 32}, {"split", 1}}},
                     {ir::Skeleton::reduce,
                      {ir::StageId{1}, ir::StageId{2}, ir::StageId{3}},
                      {{"block", 32}, {"split", 1}}}};
    EXPECT_TRUE(ir::verify(program_, base_));
  }
  Result<ir::Plan> edit(std::string_view json) {
    return edit_plan(context(NodeKind::draft), base_, json);
  }
  std::string fault(std::string_view json) {
    const Result<ir::Plan> plan = edit(json);
    if (plan) return "accepted:\n" + ir::print(*plan);
    EXPECT_EQ(plan.error().code, Errc::invalid);
    return plan.error().message;
  }
  ir::Plan base_;
};

TEST_F(PlanEdit, SetsDecisions) {
  const Result<ir::Plan> plan = edit(
      R"({"edits": [{"op": "set", "kernel": 1, "decision": "block", "value": 64},
                    {"op": "set", "kernel": 0, "decision": "split", "value": 2}]})");
  ASSERT_TRUE(plan) << plan.error().to_string();
  ir::Plan expected = base_;
  expected.kernels[1].schedule["block"] = 64;
  expected.kernels[0].schedule["split"] = 2;
  EXPECT_EQ(*plan, expected);
}

TEST_F(PlanEdit, DropsWhatNobodyAskedForAndNoLongerFits) {
  base_.kernels[0].schedule["block"] = 7;  // as an older target allowed it
  const Result<ir::Plan> plan =
      edit(R"([{"op": "set", "kernel": 0, "decision": "split", "value": 2}])");
  ASSERT_TRUE(plan) << plan.error().to_string();
  EXPECT_EQ(plan->kernels[0].schedule, (ir::Schedule{{"split", 2}}));
}

TEST_F(PlanEdit, TakesAListAndAWholePlanToo) {
  EXPECT_TRUE(edit(R"([{"op": "set", "kernel": 0, "decision": "block", "value": 16}])"));
  ir::Plan other = base_;
  other.kernels[0].schedule["block"] = 128;
  EXPECT_EQ(*edit(dump_json(ir::encode(other))), other);
}

TEST_F(PlanEdit, MovesFusionBoundaries) {
  const Result<ir::Plan> split = edit(R"({"edits": [
      {"op": "split", "kernel": 1, "before": 3},
      {"op": "set", "kernel": 2, "decision": "unroll", "value": 4}]})");
  ASSERT_TRUE(split) << split.error().to_string();
  ASSERT_EQ(split->kernels.size(), 3u);
  EXPECT_EQ(split->kernels[2].skeleton, ir::Skeleton::map);
  EXPECT_EQ(split->kernels[2].schedule, (ir::Schedule{{"unroll", 4}}));
  EXPECT_TRUE(split->kernels[1].schedule.empty()) << "what was changed starts anew";
  const Result<ir::Plan> back = edit(R"({"edits": [
      {"op": "split", "kernel": 1, "before": 3}, {"op": "merge", "kernels": [1, 2]}]})");
  ASSERT_TRUE(back) << back.error().to_string();
  ASSERT_EQ(back->kernels.size(), 2u);
  EXPECT_EQ(back->kernels[1].stages, base_.kernels[1].stages);
  EXPECT_EQ(back->kernels[1].skeleton, ir::Skeleton::reduce);
}

TEST_F(PlanEdit, ChangesSkeletons) {
  const Result<ir::Plan> plan =
      edit(R"({"edits": [{"op": "skeleton", "kernel": 0, "to": "reduce"}]})");
  ASSERT_TRUE(plan) << plan.error().to_string();
  EXPECT_EQ(plan->kernels[0].skeleton, ir::Skeleton::reduce);
}

TEST_F(PlanEdit, InlinesAndKeepsStages) {
  Result<ir::Program> program = ir::parse_program(R"(
tensor %0 x: float32[64] input
tensor %1 a: float32[64] intermediate
tensor %2 b: float32[64] output
inputs %0
stage %1[i=64] = map: exp(load %0[i0])
stage %2[i=64] = map: add(load %1[i0], load %0[i0])
outputs %2
)");
  ASSERT_TRUE(program);
  program_ = std::move(*program);
  base_.kernels = {{ir::Skeleton::map, {ir::StageId{0}}, {}},
                   {ir::Skeleton::map, {ir::StageId{1}}, {}}};
  const Result<ir::Plan> inlined = edit(R"({"edits": [{"op": "inline", "stage": 0}]})");
  ASSERT_TRUE(inlined) << inlined.error().to_string();
  ASSERT_EQ(inlined->kernels.size(), 1u);
  EXPECT_EQ(inlined->kernels[0].stages, std::vector{ir::StageId{1}});
  EXPECT_NE(fault(R"({"edits": [{"op": "inline", "stage": 1}]})").find("not legal"),
            std::string::npos)
      << "its tensor is an output";
  base_ = *inlined;
  const Result<ir::Plan> kept = edit(R"({"edits": [{"op": "keep", "stage": 0}]})");
  ASSERT_TRUE(kept) << kept.error().to_string();
  ASSERT_EQ(kept->kernels.size(), 2u);
  EXPECT_EQ(kept->kernels[0].stages, std::vector{ir::StageId{0}});
  EXPECT_NE(fault(R"({"edits": [{"op": "keep", "stage": 1}]})").find("has a kernel already"),
            std::string::npos);
}

TEST_F(PlanEdit, EveryRefusalSaysWhy) {
  const struct {
    const char* json;
    const char* words;
  } cases[] = {
      {"{", "not valid JSON"},
      {"7", "no JSON object"},
      {"{}", "neither \"edits\" nor \"kernels\""},
      {R"({"edits": []})", "no list of 1 to 64"},
      {R"({"edits": 3})", "no list of 1 to 64"},
      {R"({"edits": [1]})", "edit 1 is not legal: it is not a JSON object"},
      {R"({"edits": [{}]})", "lacks the field 'op'"},
      {R"({"edits": [{"op": "explode"}]})", "there is no operation 'explode'; there are set,"},
      {R"({"edits": [{"op": "set", "kernel": 7, "decision": "block", "value": 16}]})",
       "there is no kernel 7; there are 0, 1"},
      {R"({"edits": [{"op": "set", "kernel": 0, "decision": "blok", "value": 16}]})",
       "kernel 0 (contract) has no decision 'blok'; it has block, split"},
      {R"({"edits": [{"op": "set", "kernel": 0, "decision": "block", "value": 48}]})",
       "block of kernel 0 may not be 48; legal: 16, 32, 64, 128"},
      {R"({"edits": [{"op": "set", "kernel": 0, "decision": "block", "value": "64"}]})",
       "no whole number"},
      {R"({"edits": [{"op": "set", "kernel": 1e300, "decision": "block", "value": 64}]})",
       "its 'kernel' is no whole number"},
      {R"({"edits": [{"op": "set", "kernel": 0, "decision": "B\n#", "value": 64}]})",
       "is not the name of a decision"},
      {R"({"edits": [{"op": "set", "kernel": 0, "decision": "block", "value": 64, "x": 1}]})",
       "unknown field 'x'"},
      {R"({"edits": [{"op": "skeleton", "kernel": 0, "to": "sort"}]})",
       "a skeleton is map, reduce, contract or scan"},
      {R"({"edits": [{"op": "skeleton", "kernel": 0, "to": "map"}]})", "edit 1 is not legal: "},
      {R"({"edits": [{"op": "merge", "kernels": [0]}]})", "no two different numbers"},
      {R"({"edits": [{"op": "merge", "kernels": [0, 0]}]})", "no two different numbers"},
      {R"({"edits": [{"op": "split", "kernel": 1, "before": 0}]})",
       "stage 0 is not in the kernel, or is its first"},
      {R"({"edits": [{"op": "split", "kernel": 1, "before": 99}]})",
       "there is no stage 99; the last one is 3"},
      {R"({"edits": [{"op": "inline", "stage": 0}]})", "edit 1 is not legal: "},
      {R"({"edits": [{"op": "set", "kernel": 0, "decision": "split", "value": 2}], "kernels": []})",
       "beside \"edits\""},
      {R"({"kernels": []})", "The plan cannot be used: "},
      {R"({"kernels": [{"skeleton": "reduce", "stages": [99]}]})", "outside 0..3"},
      {R"({"kernels": [{"skeleton": "contract", "stages": [0], "schedule": {"block": 5}},
                       {"skeleton": "reduce", "stages": [1, 2, 3]}]})",
       "block of kernel 0 may not be 5"},
  };
  for (const auto& one : cases) {
    const std::string said = fault(one.json);
    EXPECT_NE(said.find(one.words), std::string::npos) << one.json << "\n" << said;
    EXPECT_EQ(said.find('\n'), std::string::npos);
  }
}

// Whatever the JSON: a plan that comes out is legal.
TEST_F(PlanEdit, RandomEditsAreLegalOrRefused) {
  Rng rng(1);
  const char* ops[] = {"set", "skeleton", "merge", "split", "inline", "keep"};
  const char* skeletons[] = {"map", "reduce", "contract", "scan"};
  int accepted_count = 0;
  for (int round = 0; round < 2000; ++round) {
    Json edits = Json::array();
    for (int64_t i = 1 + rng.below(4); i > 0; --i) {
      const int64_t op = rng.below(6);
      Json one{{"op", ops[op]}};
      if (op == 0) {
        one["decision"] = rng.chance(0.5) ? "block" : "unroll";
        one["value"] = int64_t{1} << rng.below(8);
      }
      if (op == 1) one["to"] = skeletons[rng.below(4)];
      if (op == 2) one["kernels"] = {rng.below(4), rng.below(4)};
      if (op == 3) one["before"] = rng.below(5);
      if (op >= 4) one["stage"] = rng.below(5);
      if (op == 0 || op == 1 || op == 3 || (op == 5 && rng.chance(0.5))) {
        one["kernel"] = rng.below(4);
      }
      edits.push_back(one);
    }
    const Result<ir::Plan> plan = edit(dump_json({{"edits", edits}}));
    if (!plan) continue;
    ++accepted_count;
    EXPECT_TRUE(ir::verify(program_, *plan)) << dump_json(edits);
    EXPECT_TRUE(synth::complete(context(NodeKind::draft), program_, *plan));
  }
  EXPECT_GT(accepted_count, 20);
}

TEST_F(PlanEdit, StartsFromTheParentOrFromGreedyFusion) {
  EXPECT_EQ(base_genome(context(NodeKind::draft))->cases.front().plan.kernels.size(),
            ir::fuse_greedily(program_).kernels.size());
  const NodeId planned = add({.plan = dump_json(ir::encode(base_))});
  EXPECT_EQ(base_genome(context(NodeKind::mutate, {planned}))->cases.front().plan, base_);
  const NodeId written = add({.source = "int f();"});
  EXPECT_FALSE(base_genome(context(NodeKind::mutate, {written})).has_value());
  has_program_ = false;
  EXPECT_FALSE(base_genome(context(NodeKind::draft)).has_value());
}

}  // namespace
}  // namespace ke::model
