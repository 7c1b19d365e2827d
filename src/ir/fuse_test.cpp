// SPDX-License-Identifier: Apache-2.0
//
// The fusions that named operators must get, and the shapes of their kernels.
#include "ir/fuse.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ir/interpret.hpp"

namespace ke::ir {
namespace {

std::string axes_of(const std::vector<Axis>& axes) {
  std::string text;
  for (const Axis& axis : axes) {
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", axis.name, axis.extent);
  }
  return text;
}

// "reduce [n=4] (maximum c=6) (map c=6)": skeleton, rows and the stages with their inner axes.
std::string shape_of(const FusedKernel& kernel) {
  std::string text = fmt::format("{} [{}]", enum_name(kernel.skeleton), axes_of(kernel.rows));
  for (const FusedStage& stage : kernel.stages) {
    const bool map = stage.reduce == ReduceOp::none;
    text += fmt::format(" ({}{}{})", map ? "map" : enum_name(stage.reduce),
                        stage.inner.empty() ? "" : " ", axes_of(stage.inner));
  }
  return text;
}

struct Fused {
  Program program;
  std::vector<FusedKernel> kernels;

  explicit Fused(const std::string& text) : program(parse_program(text).value()) {
    const auto valid = verify(program);
    EXPECT_TRUE(valid.has_value()) << valid.error().to_string();
    auto realized = realize(program, fuse_greedily(program));
    EXPECT_TRUE(realized.has_value()) << realized.error().to_string();
    if (realized) kernels = *realized;
  }
  std::string shapes() const {
    std::string text;
    for (const FusedKernel& kernel : kernels) text += shape_of(kernel) + "\n";
    return text;
  }
};

TEST(FuseGreedily, MakesOneMapOfPointwiseChains) {
  const Fused fused(
      "tensor %0 x: float32[16, 64] input\n"
      "tensor %1 a: float32[16, 64] intermediate\n"
      "tensor %2 y: float32[16, 64] output\n"
      "inputs %0\n"
      "stage %1[i=16, j=64] = map: tanh(load %0[i0, i1])  # aten.tanh.default\n"
      "stage %2[i=16, j=64] = map: mul(load %0[i0, i1], load %1[i0, i1])  # aten.mul.Tensor\n"
      "outputs %2\n");
  EXPECT_EQ(fused.shapes(), "map [i_j=1024] (map)\n");
  ASSERT_EQ(fused.kernels.size(), 1u);
  EXPECT_EQ(fused.kernels[0].name, "kernel0_mul");
  EXPECT_EQ(fused.kernels[0].stages[0].origin, "aten.tanh.default, aten.mul.Tensor");
  const FusedStage& stage = fused.kernels[0].stages[0];
  EXPECT_EQ(print(*element_offset(fused.program.tensor(stage.output), stage.store, {1024})), "i0");
}

TEST(FuseGreedily, DoesNotCollapseWhatAnInputWalksOtherwise) {
  const Fused fused(
      "tensor %0 x: float32[16, 64] strides [1, 16] input\n"
      "tensor %1 y: float32[16, 64] output\n"
      "inputs %0\n"
      "stage %1[i=16, j=64] = map: neg(load %0[i0, i1])\n"
      "outputs %1\n");
  EXPECT_EQ(fused.shapes(), "map [i=16 j=64] (map)\n");
  EXPECT_EQ(fused.kernels.at(0).name, "kernel0_map");
}

TEST(FuseGreedily, MakesOneReduceOfSoftmax) {
  const Fused fused(
      "tensor %0 x: float32[16, 64] input\n"
      "tensor %1 top: float32[16] intermediate\n"
      "tensor %2 e: float32[16, 64] intermediate\n"
      "tensor %3 s: float32[16] intermediate\n"
      "tensor %4 y: float32[16, 64] output\n"
      "inputs %0\n"
      "stage %1[n=16] = maximum[c=64] in float32: load %0[i0, i1]  # aten._softmax.default\n"
      "stage %2[n=16, c=64] = map: exp(sub(load %0[i0, i1], load %1[i0]))  # "
      "aten._softmax.default\n"
      "stage %3[n=16] = sum[c=64] in float32: load %2[i0, i1]  # aten._softmax.default\n"
      "stage %4[n=16, c=64] = map: div(load %2[i0, i1], load %3[i0])  # aten._softmax.default\n"
      "outputs %4\n");
  EXPECT_EQ(fused.shapes(), "reduce [n=16] (maximum c=64) (sum c=64) (map c=64)\n");
  ASSERT_EQ(fused.kernels.size(), 1u);
  const FusedKernel& kernel = fused.kernels[0];
  EXPECT_EQ(kernel.name, "kernel0_softmax");
  EXPECT_EQ(kernel.reads, (std::vector<TensorId>{{0}}));
  EXPECT_EQ(kernel.internals, (std::vector<TensorId>{{1}, {3}}));
  EXPECT_EQ(kernel.writes, (std::vector<TensorId>{{4}}));
}

TEST(FuseGreedily, MakesOneReduceOfLayerNorm) {
  const Fused fused(
      "tensor %0 x: float32[16, 3, 5, 7] input\n"
      "tensor %1 w: float32[3, 5, 7] input\n"
      "tensor %2 s: float32[16] intermediate\n"
      "tensor %3 mean: float32[16] intermediate\n"
      "tensor %4 d: float32[16, 3, 5, 7] intermediate\n"
      "tensor %5 q: float32[16] intermediate\n"
      "tensor %6 scale: float32[16] intermediate\n"
      "tensor %7 y: float32[16, 3, 5, 7] output\n"
      "inputs %0, %1\n"
      "stage %2[n=16] = sum[c=3, h=5, w=7] in float32: load %0[i0, i1, i2, i3]\n"
      "stage %3[n=16] = map: div(load %2[i0], 105.0:float32)\n"
      "stage %4[n=16, c=3, h=5, w=7] = map: sub(load %0[i0, i1, i2, i3], load %3[i0])\n"
      "stage %5[n=16] = sum[c=3, h=5, w=7] in float32: "
      "mul(load %4[i0, i1, i2, i3], load %4[i0, i1, i2, i3])\n"
      "stage %6[n=16] = map: rsqrt(add(div(load %5[i0], 105.0:float32), 0.001:float32))\n"
      "stage %7[n=16, c=3, h=5, w=7] = map: "
      "mul(mul(load %4[i0, i1, i2, i3], load %6[i0]), load %1[i1, i2, i3])\n"
      "outputs %7\n");
  EXPECT_EQ(fused.shapes(),
            "reduce [n=16] (sum c_h_w=105) (map) (sum c_h_w=105) (map) (map c_h_w=105)\n");
}

TEST(FuseGreedily, MakesOneReduceOfRmsNormOverChannels) {
  const Fused fused(
      "tensor %0 x: float32[16, 3, 5, 7] input\n"
      "tensor %1 q: float32[16, 5, 7] intermediate\n"
      "tensor %2 rms: float32[16, 1, 5, 7] intermediate\n"
      "tensor %3 y: float32[16, 3, 5, 7] output\n"
      "inputs %0\n"
      "stage %1[n=16, h=5, w=7] = sum[c=3] in float32: "
      "mul(load %0[i0, i3, i1, i2], load %0[i0, i3, i1, i2])\n"
      "stage %2[n=16, c=1, h=5, w=7] = map: "
      "sqrt(add(div(load %1[i0, i2, i3], 3.0:float32), 0.001:float32))\n"
      "stage %3[n=16, c=3, h=5, w=7] = map: "
      "div(load %0[i0, i1, i2, i3], load %2[i0, 0, i2, i3])\n"
      "outputs %3\n");
  EXPECT_EQ(fused.shapes(), "reduce [n=16 h_w=35] (sum c=3) (map) (map c=3)\n");
}

TEST(FuseGreedily, MakesOneReduceOfALoss) {
  const Fused fused(
      "tensor %0 p: float32[8, 9] input\n"
      "tensor %1 t: float32[8, 9] input\n"
      "tensor %2 d: float32[8, 9] intermediate\n"
      "tensor %3 s: float32[] intermediate\n"
      "tensor %4 y: float32[] output\n"
      "inputs %0, %1\n"
      "stage %2[i=8, j=9] = map: sub(load %0[i0, i1], load %1[i0, i1])\n"
      "stage %3[] = sum[i=8, j=9] in float32: mul(load %2[i0, i1], load %2[i0, i1])\n"
      "stage %4[] = map: div(load %3[], 72.0:float32)\n"
      "outputs %4\n");
  EXPECT_EQ(fused.shapes(), "reduce [] (sum i_j=72) (map)\n");
}

TEST(FuseGreedily, ReducesDimensionsWhereverTheyAre) {
  const Fused fused(
      "tensor %0 x: float32[4, 5, 6] input\n"
      "tensor %1 a: int64[4, 6] output\n"
      "inputs %0\n"
      "stage %1[i=4, k=6] = argmax[j=5] in float32: load %0[i0, i2, i1]\n"
      "outputs %1\n");
  EXPECT_EQ(fused.shapes(), "reduce [i=4 k=6] (argmax j=5)\n");
}

constexpr const char* kLinear =
    "tensor %0 x: float32[12, 10] input\n"
    "tensor %1 w: float32[20, 10] input\n"
    "tensor %2 bias: float32[20] input\n"
    "tensor %3 mm: float32[12, 20] intermediate\n"
    "tensor %4 h: float32[12, 20] intermediate\n"
    "tensor %5 y: float32[12, 20] output\n"
    "inputs %0, %1, %2\n"
    "stage %3[m=12, n=20] = sum[k=10] in float32: mul(load %1[i1, i2], load %0[i0, i2])\n"
    "stage %4[m=12, n=20] = map: add(load %3[i0, i1], load %2[i1])\n"
    "stage %5[m=12, n=20] = map: mul(load %4[i0, i1], tanh(log1p(exp(load %4[i0, i1]))))\n"
    "outputs %5\n";

TEST(FuseGreedily, MakesOneContractOfALinearLayerWithItsTail) {
  const Fused fused(kLinear);
  EXPECT_EQ(fused.shapes(), "contract [m=12 n=20] (sum k=10) (map)\n");
  ASSERT_EQ(fused.kernels.size(), 1u);
  EXPECT_EQ(fused.kernels[0].internals, (std::vector<TensorId>{{3}}));
  // The factor that walks m comes first, although the program has it second.
  EXPECT_EQ(print(*fused.kernels[0].stages[0].body), "mul(load %0[i0, i2], load %1[i1, i2])");
}

TEST(FuseGreedily, CollapsesTheRowsOfABatchedLinearLayer) {
  const Fused fused(
      "tensor %0 x: float32[2, 6, 10] input\n"
      "tensor %1 w: float32[10, 20] input\n"
      "tensor %2 mm: float32[12, 20] intermediate\n"
      "tensor %3 y: float32[2, 6, 20] output\n"
      "inputs %0, %1\n"
      "stage %2[m=12, n=20] = sum[k=10] in float32: "
      "mul(load %0[floor_div(i0, 6), mod(i0, 6), i2], load %1[i2, i1])\n"
      "stage %3[b=2, s=6, n=20] = map: maximum(load %2[add(mul(i0, 6), i1), i2], 0.0:float32)\n"
      "outputs %3\n");
  EXPECT_EQ(fused.shapes(), "contract [m=12 n=20] (sum k=10) (map)\n");
}

TEST(FuseGreedily, SeesBatchesAndConvolutionsAsContractions) {
  const Fused batched(
      "tensor %0 a: float32[3, 4, 5] input\n"
      "tensor %1 b: float32[3, 5, 6] input\n"
      "tensor %2 y: float32[3, 4, 6] output\n"
      "inputs %0, %1\n"
      "stage %2[i=3, j=4, l=6] = sum[k=5] in float32: mul(load %0[i0, i1, i3], load %1[i0, i3, "
      "i2])\n"
      "outputs %2\n");
  EXPECT_EQ(batched.shapes(), "contract [b=3 m=4 n=6] (sum k=5)\n");
  const Fused convolution(
      "tensor %0 x: float32[2, 3, 8, 8] input\n"
      "tensor %1 w: float32[4, 3, 3, 3] input\n"
      "tensor %2 y: float32[2, 4, 6, 6] output\n"
      "inputs %0, %1\n"
      "stage %2[n=2, o=4, p=6, q=6] = sum[c=3, r=3, s=3] in float32: "
      "mul(load %0[i0, i4, add(i2, i5), add(i3, i6)], load %1[i1, i4, i5, i6])\n"
      "outputs %2\n");
  EXPECT_EQ(convolution.shapes(), "contract [m=4 n=2 n1=6 n2=6] (sum k=3 k1=3 k2=3)\n");
}

TEST(FuseGreedily, LeavesIntegerAndVectorProductsToReduce) {
  const Fused integer(
      "tensor %0 a: int64[4, 5] input\n"
      "tensor %1 b: int64[5, 6] input\n"
      "tensor %2 y: int64[4, 6] output\n"
      "inputs %0, %1\n"
      "stage %2[i=4, j=6] = sum[k=5] in int64: mul(load %0[i0, i2], load %1[i2, i1])\n"
      "outputs %2\n");
  EXPECT_EQ(integer.shapes(), "reduce [i=4 j=6] (sum k=5)\n");
  const Fused vector(
      "tensor %0 a: float32[4, 5] input\n"
      "tensor %1 b: float32[5] input\n"
      "tensor %2 y: float32[4] output\n"
      "inputs %0, %1\n"
      "stage %2[i=4] = sum[k=5] in float32: mul(load %0[i0, i1], load %1[i1])\n"
      "outputs %2\n");
  EXPECT_EQ(vector.shapes(), "reduce [i=4] (sum k=5)\n");
}

TEST(FuseGreedily, DropsStagesThatNoOutputNeeds) {
  const Fused fused(
      "tensor %0 x: float32[8] input\n"
      "tensor %1 unused: float32[] intermediate\n"
      "tensor %2 y: float32[8] output\n"
      "inputs %0\n"
      "stage %1[] = sum[i=8] in float32: load %0[i0]\n"
      "stage %2[i=8] = map: neg(load %0[i0])\n"
      "outputs %2\n");
  EXPECT_EQ(fused.shapes(), "map [i=8] (map)\n");
}

TEST(WorthStoring, FollowsItsRule) {
  // e is read at four places of y: recomputing exp three times costs 48, storing it 16.
  const Program program =
      parse_program(
          "tensor %0 x: float32[8] input\n"
          "tensor %1 e: float32[8] intermediate\n"
          "tensor %2 t: float32[8] intermediate\n"
          "tensor %3 y: float32[5] output\n"
          "inputs %0\n"
          "stage %1[i=8] = map: exp(load %0[i0])\n"
          "stage %2[i=8] = map: add(load %0[i0], 1.0:float32)\n"
          "stage %3[i=5] = map: add(add(add(load %1[i0], load %1[add(i0, 1)]), "
          "add(load %1[add(i0, 2)], load %1[add(i0, 3)])), mul(load %2[i0], load %2[i0]))\n"
          "outputs %3\n")
          .value();
  ASSERT_TRUE(verify(program).has_value());
  EXPECT_EQ(worth_storing(ProgramIndex(program)), (std::vector<bool>{true, false, true}));
}

TEST(FusionNeighbours, MovesOneBoundaryOnce) {
  const Program program = parse_program(kLinear).value();
  const Plan plan = fuse_greedily(program);
  std::set<std::string> found;
  for (const Plan& neighbour : fusion_neighbours(program, plan)) {
    EXPECT_TRUE(verify(program, neighbour).has_value());
    EXPECT_TRUE(found.insert(print(neighbour)).second);
  }
  EXPECT_TRUE(found.contains("contract 0\nmap 2\n"));  // split
  EXPECT_TRUE(found.contains("contract 0 1 2\n"));     // the biased sum materialised
  EXPECT_TRUE(found.contains("reduce 0 2\n"));         // another skeleton
  EXPECT_FALSE(found.contains(print(plan)));
}

}  // namespace
}  // namespace ke::ir
