// SPDX-License-Identifier: Apache-2.0
//
// Goldens of what graphs lower to, and one test for every refusal. That the programs are right is
// shown by comparing them with PyTorch on random graphs (tests/fuzz).
#include "ir/lower/lower.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "golden.hpp"
#include "graph_writer.hpp"

namespace ke::ir {
namespace {

using testing_support::GraphWriter;
using testing_support::integer;
using testing_support::list;
using testing_support::matches_golden;

std::string lowered(const Graph& graph) {
  const Result<Program> program = lower(graph);
  return program.has_value() ? print(*program) : program.error().to_string() + "\n";
}

std::string refusal(const Graph& graph) {
  const Result<Program> program = lower(graph);
  return program.has_value() ? "it was lowered" : program.error().to_string();
}

TEST(Lower, MakesOneMapOfEachPointwiseOperation) {
  GraphWriter g;
  const ValueId x = g.input("x", {16, 64}), bias = g.input("bias", {64});
  const ValueId sum = g.call("aten.add.Tensor", {Arg{x}, Arg{bias}}, {16, 64}, DType::float32,
                             {{"alpha", integer(2)}});
  const ValueId out = g.call("aten.leaky_relu.default", {Arg{sum}, Arg{0.1}}, {16, 64});
  EXPECT_TRUE(matches_golden(lowered(g.returning({out})), "lower/pointwise.txt"));
}

TEST(Lower, ComputesHalfTypesInSinglePrecision) {
  GraphWriter g;
  const ValueId x = g.input("x", {8}, DType::float16);
  const ValueId out = g.call("aten.gelu.default", {Arg{x}}, {8}, DType::float16, {});
  EXPECT_TRUE(matches_golden(lowered(g.returning({out})), "lower/half.txt"));
}

TEST(Lower, SubtractsTheMaximumInSoftmax) {
  GraphWriter g;
  const ValueId x = g.input("x", {4, 8, 16});
  const ValueId out = g.call("aten._softmax.default", {Arg{x}, integer(1), Arg{false}}, {4, 8, 16});
  EXPECT_TRUE(matches_golden(lowered(g.returning({out})), "lower/softmax.txt"));
}

TEST(Lower, TakesOneLogarithmARowInLogSoftmax) {
  GraphWriter g;
  const ValueId x = g.input("x", {4, 8});
  const ValueId out =
      g.call("aten._log_softmax.default", {Arg{x}, integer(-1), Arg{false}}, {4, 8});
  EXPECT_TRUE(matches_golden(lowered(g.returning({out})), "lower/log_softmax.txt"));
}

TEST(Lower, NormalisesLayersInTwoPassesAndDropsUnusedStatistics) {
  GraphWriter g;
  const ValueId x = g.input("x", {4, 6, 8}), w = g.input("ln.weight", {6, 8});
  const ValueId out = g.call("aten.native_layer_norm.default",
                             {Arg{x}, list({6, 8}), Arg{w}, Arg{}, Arg{1e-5}}, {4, 6, 8});
  g.also_returns(g.declare("mean", {4, 1, 1}));
  g.also_returns(g.declare("rstd", {4, 1, 1}));
  EXPECT_TRUE(matches_golden(lowered(g.returning({out})), "lower/layer_norm.txt"));
}

TEST(Lower, NormalisesGroupsOverTheGroupedShape) {
  GraphWriter g;
  const ValueId x = g.input("x", {2, 6, 5}), w = g.input("weight", {6}), b = g.input("bias", {6});
  const ValueId out =
      g.call("aten.native_group_norm.default",
             {Arg{x}, Arg{w}, Arg{b}, integer(2), integer(6), integer(5), integer(3), Arg{1e-5}},
             {2, 6, 5});
  g.also_returns(g.declare("mean", {2, 3}));
  g.also_returns(g.declare("rstd", {2, 3}));
  EXPECT_TRUE(matches_golden(lowered(g.returning({out})), "lower/group_norm.txt"));
}

TEST(Lower, KeepsReducedDimensionsAsIndexArithmetic) {
  GraphWriter g;
  const ValueId x = g.input("x", {4, 8, 16});
  const ValueId mean = g.call("aten.mean.dim", {Arg{x}, list({1}), Arg{true}}, {4, 1, 16});
  const ValueId out = g.call("aten.div.Tensor", {Arg{x}, Arg{mean}}, {4, 8, 16});
  EXPECT_TRUE(matches_golden(lowered(g.returning({out, mean})), "lower/mean_keepdim.txt"));
}

TEST(Lower, GivesPositionsOfExtremesAsASecondStage) {
  GraphWriter g;
  const ValueId x = g.input("x", {4, 8});
  const ValueId top = g.call("aten.max.dim", {Arg{x}, integer(1)}, {4});
  const ValueId where = g.declare("max_1", {4}, DType::int64);
  g.also_returns(where);
  EXPECT_TRUE(matches_golden(lowered(g.returning({top, where})), "lower/max_dim.txt"));
}

TEST(Lower, MultipliesPermutedOperandsWithoutACopy) {
  GraphWriter g;
  const ValueId a = g.input("A", {64, 16}), b = g.input("B", {32, 64});
  const ValueId at = g.call("aten.permute.default", {Arg{a}, list({1, 0})}, {16, 64});
  const ValueId bt = g.call("aten.t.default", {Arg{b}}, {64, 32});
  const ValueId out = g.call("aten.mm.default", {Arg{at}, Arg{bt}}, {16, 32});
  EXPECT_TRUE(matches_golden(lowered(g.returning({out})), "lower/mm_permuted.txt"));
}

TEST(Lower, AddsToAProductInAStageOfItsOwn) {
  GraphWriter g;
  const ValueId x = g.input("x", {16, 64}, DType::bfloat16);
  const ValueId w = g.input("w", {64, 8}, DType::bfloat16);
  const ValueId bias = g.input("bias", {8}, DType::bfloat16);
  const ValueId out = g.call("aten.addmm.default", {Arg{bias}, Arg{x}, Arg{w}}, {16, 8},
                             DType::bfloat16, {{"beta", integer(1)}, {"alpha", Arg{0.5}}});
  EXPECT_TRUE(matches_golden(lowered(g.returning({out})), "lower/addmm.txt"));
}

TEST(Lower, ReturnsARegroupedProductWithoutACopy) {
  GraphWriter g;
  const ValueId x = g.input("x", {2, 3, 8}), w = g.input("w", {8, 5});
  const ValueId flat = g.call("aten.view.default", {Arg{x}, list({6, 8})}, {6, 8});
  const ValueId product = g.call("aten.mm.default", {Arg{flat}, Arg{w}}, {6, 5});
  const ValueId out = g.call("aten.view.default", {Arg{product}, list({2, 3, 5})}, {2, 3, 5});
  EXPECT_TRUE(matches_golden(lowered(g.returning({out})), "lower/mm_views.txt"));
}

TEST(Lower, ComposesViewsIntoTheIndicesOfOneCopy) {
  GraphWriter g;
  const ValueId x = g.input("x", {4, 6});
  const ValueId part =
      g.call("aten.slice.Tensor", {Arg{x}, integer(1), integer(1), integer(INT64_MAX), integer(2)},
             {4, 3});
  const ValueId turned = g.call("aten.permute.default", {Arg{part}, list({1, 0})}, {3, 4});
  const ValueId flipped = g.call("aten.flip.default", {Arg{turned}, list({0})}, {3, 4});
  const ValueId flat = g.call("aten.view.default", {Arg{flipped}, list({12})}, {12});
  EXPECT_TRUE(matches_golden(lowered(g.returning({flat})), "lower/views.txt"));
}

TEST(Lower, ChoosesLazilyBetweenConcatenatedOperands) {
  GraphWriter g;
  const ValueId x = g.input("x", {2, 3}), y = g.input("y", {2, 4});
  const ValueId both = g.call("aten.cat.default",
                              {Arg{std::vector<Arg>{Arg{x}, Arg{y}, Arg{x}}}, integer(1)}, {2, 10});
  const ValueId out =
      g.call("aten.constant_pad_nd.default", {Arg{both}, list({1, 0}), Arg{2.0}}, {2, 11});
  EXPECT_TRUE(matches_golden(lowered(g.returning({out})), "lower/cat_pad.txt"));
}

TEST(Lower, CopiesInputsAndRepeatedOutputs) {
  GraphWriter g;
  const ValueId x = g.input("x", {3});
  const ValueId out = g.call("aten.relu.default", {Arg{x}}, {3});
  EXPECT_TRUE(matches_golden(lowered(g.returning({out, x, out})), "lower/outputs.txt"));
}

// What comes before is the scan's body, what comes after the place of its result.
TEST(Lower, ScansWhatIsFlippedShiftedAndMasked) {
  GraphWriter g;
  const ValueId x = g.input("x", {4, 6}), mask = g.input("mask", {4, 6}, DType::boolean);
  const ValueId turned = g.call("aten.flip.default", {Arg{x}, list({1})}, {4, 6});
  const ValueId sums = g.call("aten.cumsum.default", {Arg{turned}, integer(1)}, {4, 6});
  const ValueId back = g.call("aten.flip.default", {Arg{sums}, list({1})}, {4, 6});
  const ValueId shifted = g.call("aten.constant_pad_nd.default", {Arg{x}, list({1, -1})}, {4, 6});
  const ValueId before = g.call("aten.cumsum.default", {Arg{shifted}, integer(-1)}, {4, 6});
  const ValueId masked = g.call("aten.mul.Tensor", {Arg{x}, Arg{mask}}, {4, 6});
  const ValueId products = g.call("aten.cumprod.default", {Arg{masked}, integer(0)}, {4, 6});
  EXPECT_TRUE(matches_golden(lowered(g.returning({back, before, products})), "lower/scans.txt"));
}

TEST(Lower, CountsInInt64AndScansHalfInSinglePrecision) {
  GraphWriter g;
  const ValueId x = g.input("x", {8}, DType::float16), b = g.input("b", {8}, DType::boolean);
  const ValueId sums = g.call("aten.cumsum.default", {Arg{x}, integer(0)}, {8}, DType::float16, {});
  const ValueId counts = g.call("aten.cumsum.default", {Arg{b}, integer(0)}, {8}, DType::int64, {});
  EXPECT_TRUE(matches_golden(lowered(g.returning({sums, counts})), "lower/scan_types.txt"));
}

TEST(Lower, MakesTwoContractionsOfAttention) {
  GraphWriter g;
  const ValueId q = g.input("q", {1, 2, 4, 8}), k = g.input("k", {1, 2, 6, 8});
  const ValueId v = g.input("v", {1, 2, 6, 3});
  const ValueId out = g.call("aten._scaled_dot_product_flash_attention_for_cpu.default",
                             {Arg{q}, Arg{k}, Arg{v}, Arg{0.0}, Arg{true}}, {1, 2, 4, 3});
  g.also_returns(g.declare("logsumexp", {1, 2, 4}));
  EXPECT_TRUE(matches_golden(lowered(g.returning({out})), "lower/attention.txt"));
}

// Elements 1 and 3 of each row.
TEST(Lower, ReadsStridesAsPositionsOfTheOperand) {
  GraphWriter g;
  const ValueId x = g.input("x", {3, 4});
  const ValueId out =
      g.call("aten.as_strided.default", {Arg{x}, list({3, 2}), list({4, 2}), integer(1)}, {3, 2});
  const std::string text = lowered(g.returning({out}));
  EXPECT_NE(text.find("load %0[i0, add(mul(i1, 2), 1)]"), std::string::npos) << text;
}

// --- Refusals -----------------------------------------------------------------------------------

TEST(Lower, NamesAnOperationWithoutALowering) {
  GraphWriter g;
  const ValueId out = g.call("aten.foo.bar", {Arg{g.input("x", {2})}}, {2});
  const Result<Program> program = lower(g.returning({out}));
  ASSERT_FALSE(program.has_value());
  EXPECT_EQ(program.error().code, Errc::unavailable);
  EXPECT_EQ(program.error().message, "no lowering for aten.foo.bar");
}

TEST(Lower, RefusesOperandsThatDoNotBroadcast) {
  GraphWriter g;
  const ValueId x = g.input("x", {3}), y = g.input("y", {4});
  const ValueId out = g.call("aten.mul.Tensor", {Arg{x}, Arg{y}}, {3});
  EXPECT_EQ(refusal(g.returning({out})), "aten.mul.Tensor: 'y' does not broadcast to [3]");
}

TEST(Lower, RefusesADimensionOutOfRange) {
  GraphWriter g;
  const ValueId out = g.call("aten.sum.dim_IntList", {Arg{g.input("x", {3})}, list({1})}, {3});
  EXPECT_EQ(refusal(g.returning({out})), "aten.sum.dim_IntList: dimension 1 is out of range");
}

TEST(Lower, RefusesADimensionGivenTwice) {
  GraphWriter g;
  const ValueId out = g.call("aten.amax.default", {Arg{g.input("x", {3})}, list({0, -1})}, {});
  EXPECT_EQ(refusal(g.returning({out})), "aten.amax.default: a dimension appears twice");
}

TEST(Lower, RefusesAReshapeThatChangesTheNumberOfElements) {
  GraphWriter g;
  const ValueId out = g.call("aten.view.default", {Arg{g.input("x", {6})}, list({5})}, {5});
  EXPECT_EQ(refusal(g.returning({out})), "aten.view.default: it changes the number of elements");
}

TEST(Lower, RefusesASliceThatLeavesItsOperand) {
  GraphWriter g;
  const ValueId out =
      g.call("aten.slice.Tensor", {Arg{g.input("x", {6})}, integer(0), integer(2)}, {5});
  EXPECT_EQ(refusal(g.returning({out})), "aten.slice.Tensor: its part does not fit");
}

TEST(Lower, RefusesOperandsThatDoNotMultiply) {
  GraphWriter g;
  const ValueId a = g.input("a", {2, 3}), b = g.input("b", {4, 5});
  const ValueId out = g.call("aten.mm.default", {Arg{a}, Arg{b}}, {2, 5});
  EXPECT_EQ(refusal(g.returning({out})), "aten.mm.default: its operands do not multiply");
}

TEST(Lower, RefusesStridesThatLeaveTheOperand) {
  GraphWriter g;
  const ValueId out = g.call("aten.as_strided.default",
                             {Arg{g.input("x", {3, 4})}, list({2, 5}), list({4, 2})}, {2, 5});
  EXPECT_EQ(refusal(g.returning({out})), "aten.as_strided.default: it leaves its operand");
}

TEST(Lower, RefusesStridesOfAPart) {
  GraphWriter g;
  const ValueId part =
      g.call("aten.select.int", {Arg{g.input("x", {3, 4})}, integer(0), integer(1)}, {4});
  const ValueId out = g.call("aten.as_strided.default", {Arg{part}, list({2}), list({1})}, {2});
  EXPECT_EQ(refusal(g.returning({out})),
            "aten.as_strided.default: it is lowered for whole contiguous tensors only");
}

TEST(Lower, RefusesAttentionWithDropout) {
  GraphWriter g;
  const ValueId q = g.input("q", {1, 2, 4, 8});
  const ValueId out = g.call("aten._scaled_dot_product_efficient_attention.default",
                             {Arg{q}, Arg{q}, Arg{q}, Arg{}, Arg{false}, Arg{0.1}}, {1, 2, 4, 8});
  EXPECT_EQ(refusal(g.returning({out})),
            "aten._scaled_dot_product_efficient_attention.default: it is not lowered with dropout");
}

TEST(Lower, RefusesAMissingArgument) {
  GraphWriter g;
  const ValueId out = g.call("aten.add.Tensor", {Arg{g.input("x", {2})}}, {2});
  EXPECT_EQ(refusal(g.returning({out})), "aten.add.Tensor: 'other' is not a number");
}

TEST(Lower, RefusesTheUseOfASecondaryResultThatHasNoLowering) {
  GraphWriter g;
  const ValueId x = g.input("x", {2, 3}), m = g.input("m", {3}), v = g.input("v", {3});
  const ValueId out = g.call("aten._native_batch_norm_legit_no_training.default",
                             {Arg{x}, Arg{}, Arg{}, Arg{m}, Arg{v}, Arg{0.1}, Arg{1e-5}}, {2, 3});
  const ValueId saved = g.declare("saved", {0});
  g.also_returns(saved);
  EXPECT_EQ(refusal(g.returning({out, saved})),
            "no lowering for 'saved', a secondary result of its operation");
}

TEST(Lower, ListsEveryOperationOnce) {
  const std::vector<std::string_view> names = lowered_operations();
  EXPECT_GT(names.size(), 100u);
  EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));
  EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end());
}

}  // namespace
}  // namespace ke::ir
