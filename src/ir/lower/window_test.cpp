// SPDX-License-Identifier: Apache-2.0
//
// Convolutions, pools and attention: what they lower to, and their numbers on operands small enough
// to work out by hand. Comparisons with PyTorch on random ones are in tests/fuzz.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "golden.hpp"
#include "graph_writer.hpp"
#include "ir/fuse.hpp"
#include "ir/interpret.hpp"
#include "ir/lower/lower.hpp"

namespace ke::ir {
namespace {

using testing_support::GraphWriter;
using testing_support::integer;
using testing_support::list;
using testing_support::matches_golden;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

Program program_of(const Graph& graph) {
  Result<Program> program = lower(graph);
  EXPECT_TRUE(program.has_value()) << program.error().to_string();
  return program.has_value() ? std::move(*program) : Program{};
}

std::string refused(const Graph& graph) {
  const Result<Program> program = lower(graph);
  return program.has_value() ? "it was lowered" : program.error().to_string();
}

using Numbers = std::vector<double>;

// The first output; tensors are float64, positions int64.
Numbers computed(const Graph& graph, const std::vector<Numbers>& inputs) {
  const Program program = program_of(graph);
  std::vector<TensorBytes> bytes;
  for (const Numbers& numbers : inputs) {
    bytes.emplace_back(numbers.size() * sizeof(double));
    std::memcpy(bytes.back().data(), numbers.data(), bytes.back().size());
  }
  const Result<std::vector<TensorBytes>> outputs = interpret(program, bytes);
  EXPECT_TRUE(outputs.has_value()) << outputs.error().to_string();
  if (!outputs.has_value() || outputs->empty()) return {};
  const TensorBytes& first = outputs->front();
  Numbers result(first.size() / sizeof(double));
  const bool positions = program.tensor(program.outputs[0]).dtype == DType::int64;
  for (size_t i = 0; i < result.size(); ++i) {
    int64_t position = 0;
    std::memcpy(positions ? static_cast<void*>(&position) : &result[i],
                first.data() + i * sizeof(double), sizeof(double));
    if (positions) result[i] = static_cast<double>(position);
  }
  return result;
}

// "contract [n=2 o=4 …] (sum c=3 …) (map)" for each kernel of the greedy plan.
std::string kernels_of(const Program& program) {
  const auto kernels = realize(program, fuse_greedily(program));
  EXPECT_TRUE(kernels.has_value()) << kernels.error().to_string();
  std::string text;
  for (const FusedKernel& kernel : kernels.value_or(std::vector<FusedKernel>{})) {
    text += (text.empty() ? "" : "; ") + std::string(enum_name(kernel.skeleton));
    for (const Axis& row : kernel.rows) text += " " + std::to_string(row.extent);
    for (const FusedStage& stage : kernel.stages) {
      text += " (" + std::string(enum_name(stage.reduce));
      for (const Axis& axis : stage.inner) text += " " + std::to_string(axis.extent);
      text += ")";
    }
  }
  return text;
}

struct Options {
  std::vector<int64_t> stride{1}, padding{0}, dilation{1};
  bool transposed = false;
  std::vector<int64_t> output_padding{0};
  int64_t groups = 1;
};

ValueId convolve(GraphWriter& g, ValueId x, ValueId w, Arg bias, const Options& options,
                 std::vector<int64_t> shape, DType dtype = DType::float32) {
  return g.call("aten.convolution.default",
                {Arg{x}, Arg{w}, std::move(bias), list(options.stride), list(options.padding),
                 list(options.dilation), Arg{options.transposed}, list(options.output_padding),
                 integer(options.groups)},
                std::move(shape), dtype);
}

Graph convolution(std::vector<int64_t> x, std::vector<int64_t> w, const Options& options,
                  std::vector<int64_t> y) {
  GraphWriter g;
  const ValueId input = g.input("x", std::move(x), DType::float64);
  const ValueId weight = g.input("w", std::move(w), DType::float64);
  return g.returning({convolve(g, input, weight, Arg{}, options, std::move(y), DType::float64)});
}

// --- Convolutions -------------------------------------------------------------------------------

TEST(LowerConvolution, IsAContractionWithItsTail) {
  GraphWriter g;
  const ValueId x = g.input("x", {2, 3, 8, 9}, DType::float16);
  const ValueId w = g.input("w", {4, 3, 3, 3}, DType::float16);
  const ValueId b = g.input("b", {4}, DType::float16);
  const ValueId sum =
      convolve(g, x, w, Arg{b}, {.stride = {2}, .padding = {1, 0}}, {2, 4, 4, 4}, DType::float16);
  const Program program = program_of(
      g.returning({g.call("aten.relu.default", {Arg{sum}}, {2, 4, 4, 4}, DType::float16)}));
  EXPECT_TRUE(matches_golden(print(program), "lower/convolution.txt"));
  EXPECT_EQ(kernels_of(program), "contract 4 2 4 4 (sum 3 3 3) (none)");
}

TEST(LowerConvolution, MakesGroupsABatch) {
  GraphWriter g;
  const ValueId x = g.input("x", {2, 6, 8}), w = g.input("w", {4, 3, 3}), b = g.input("b", {4});
  const ValueId sum = convolve(g, x, w, Arg{b}, {.padding = {1}, .groups = 2}, {2, 4, 8});
  const Program program =
      program_of(g.returning({g.call("aten.relu.default", {Arg{sum}}, {2, 4, 8})}));
  EXPECT_TRUE(matches_golden(print(program), "lower/convolution_groups.txt"));
  EXPECT_EQ(kernels_of(program), "contract 2 2 2 8 (sum 3 3) (none)");
}

TEST(LowerConvolution, GathersWhenTransposed) {
  GraphWriter g;
  const ValueId x = g.input("x", {2, 3, 5}), w = g.input("w", {3, 4, 4});
  const Options options{.stride = {2}, .padding = {1}, .transposed = true};
  const Program program = program_of(g.returning({convolve(g, x, w, Arg{}, options, {2, 4, 10})}));
  EXPECT_TRUE(matches_golden(print(program), "lower/convolution_transposed.txt"));
  EXPECT_EQ(kernels_of(program), "contract 4 2 10 (sum 3 4)");
}

TEST(LowerConvolution, IsAProductWhereItHasOneTap) {
  GraphWriter g;
  const ValueId x = g.input("x", {2, 3, 5, 5}), w = g.input("w", {4, 3, 1, 1});
  const Program program = program_of(g.returning({convolve(g, x, w, Arg{}, {}, {2, 4, 5, 5})}));
  EXPECT_EQ(kernels_of(program), "contract 4 2 25 (sum 3)");
}

TEST(LowerConvolution, PadsWithZeros) {
  EXPECT_EQ(computed(convolution({1, 1, 3}, {1, 1, 2}, {.padding = {1}}, {1, 1, 4}),
                     {{1, 2, 3}, {1, 10}}),
            (Numbers{10, 21, 32, 3}));
}

TEST(LowerConvolution, StridesAndDilates) {
  EXPECT_EQ(computed(convolution({1, 1, 5}, {1, 1, 2}, {.stride = {2}, .dilation = {2}}, {1, 1, 2}),
                     {{1, 2, 3, 4, 5}, {1, 10}}),
            (Numbers{31, 53}));
}

TEST(LowerConvolution, SpreadsEachInputWhenTransposed) {
  const std::vector<Numbers> inputs = {{1, 2}, {1, 10, 100}};
  EXPECT_EQ(
      computed(convolution({1, 1, 2}, {1, 1, 3}, {.stride = {2}, .transposed = true}, {1, 1, 5}),
               inputs),
      (Numbers{1, 10, 102, 20, 200}));
  EXPECT_EQ(computed(convolution(
                         {1, 1, 2}, {1, 1, 3},
                         {.stride = {2}, .padding = {1}, .transposed = true, .output_padding = {1}},
                         {1, 1, 4}),
                     inputs),
            (Numbers{10, 102, 20, 200}));
}

TEST(LowerConvolution, KeepsGroupsApart) {
  EXPECT_EQ(computed(convolution({1, 2, 2}, {2, 1, 1}, {.groups = 2}, {1, 2, 2}),
                     {{1, 2, 3, 4}, {10, 100}}),
            (Numbers{10, 20, 300, 400}));
  // Transposed, a weight is [channels, outs of a group, taps].
  EXPECT_EQ(
      computed(convolution({1, 2, 1}, {2, 2, 1}, {.transposed = true, .groups = 2}, {1, 4, 1}),
               {{1, 2}, {10, 20, 30, 40}}),
      (Numbers{10, 20, 60, 80}));
}

TEST(LowerConvolution, RefusesWhatDoesNotFit) {
  EXPECT_EQ(refused(convolution({1, 3, 5}, {4, 2, 3}, {}, {1, 4, 3})),
            "aten.convolution.default: its operands do not fit");
  EXPECT_EQ(refused(convolution({1, 1, 2}, {1, 1, 3}, {}, {1, 1, 0})),
            "aten.convolution.default: its window does not fit");
  EXPECT_EQ(refused(convolution({1, 1, 5}, {1, 1, 3}, {.stride = {0}}, {1, 1, 3})),
            "aten.convolution.default: 'stride' does not fit");
  EXPECT_EQ(refused(convolution({1, 1, 5}, {1, 1, 3}, {}, {1, 1, 4})),
            "aten.convolution.default: its declared shape is wrong");
}

// --- Pools --------------------------------------------------------------------------------------

// Over the last dimension of [1, 1, n]; the second result is returned instead where wanted.
Graph max_pool(int64_t n, int64_t taps, int64_t stride, int64_t padding, int64_t outputs,
               bool positions) {
  GraphWriter g;
  const ValueId x = g.input("x", {1, 1, n}, DType::float64);
  const ValueId values = g.call("aten.max_pool2d_with_indices.default",
                                {Arg{x}, list({1, taps}), list({1, stride}), list({0, padding})},
                                {1, 1, outputs}, DType::float64);
  const ValueId where = g.declare("where", {1, 1, outputs}, DType::int64);
  g.also_returns(where);
  return g.returning({positions ? where : values});
}

TEST(LowerPool, DropsPositionsThatNothingUses) {
  GraphWriter g;
  const ValueId x = g.input("x", {2, 3, 8, 8});
  const ValueId values = g.call("aten.max_pool2d_with_indices.default",
                                {Arg{x}, list({3}), list({2}), list({1})}, {2, 3, 4, 4});
  g.also_returns(g.declare("where", {2, 3, 4, 4}, DType::int64));
  EXPECT_TRUE(matches_golden(print(program_of(g.returning({values}))), "lower/max_pool.txt"));
}

TEST(LowerPool, TakesTheFirstOfEqualMaximaAndTheLastNaN) {
  const std::vector<Numbers> x = {{1, 5, 5, kNan, kNan, 2}};
  const Numbers values = computed(max_pool(6, 3, 3, 0, 2, false), x);
  ASSERT_EQ(values.size(), 2u);
  EXPECT_EQ(values[0], 5);
  EXPECT_TRUE(std::isnan(values[1]));
  EXPECT_EQ(computed(max_pool(6, 3, 3, 0, 2, true), x), (Numbers{1, 4}));
}

TEST(LowerPool, NeverTakesThePadding) {
  const std::vector<Numbers> x = {{-kInfinity, -kInfinity}};
  EXPECT_EQ(computed(max_pool(2, 2, 1, 1, 3, true), x), (Numbers{0, 0, 1}));
  EXPECT_EQ(computed(max_pool(2, 2, 1, 1, 3, false), {{-2, -1}}), (Numbers{-2, -1, -1}));
}

// Over the last dimension of [1, 1, n].
Graph mean_pool(int64_t n, std::vector<Arg> options, int64_t outputs) {
  GraphWriter g;
  std::vector<Arg> args = {Arg{g.input("x", {1, 1, n}, DType::float64)}};
  args.insert(args.end(), options.begin(), options.end());
  return g.returning(
      {g.call("aten.avg_pool2d.default", std::move(args), {1, 1, outputs}, DType::float64)});
}

TEST(LowerPool, CountsPaddingWhereAsked) {
  const auto padded = [](bool counted, Arg divisor) {
    return mean_pool(
        3, {list({1, 3}), list({1, 2}), list({0, 1}), Arg{false}, Arg{counted}, std::move(divisor)},
        2);
  };
  EXPECT_EQ(computed(padded(true, Arg{}), {{3, 6, 9}}), (Numbers{3, 5}));
  EXPECT_EQ(computed(padded(false, Arg{}), {{3, 6, 9}}), (Numbers{4.5, 7.5}));
  EXPECT_EQ(computed(padded(true, integer(-1)), {{3, 6, 9}}), (Numbers{-9, -15}));
}

TEST(LowerPool, CountsNothingPastThePaddingOfALastWindow) {
  EXPECT_EQ(computed(mean_pool(5, {list({1, 2}), list({1, 2}), list({0}), Arg{true}}, 3),
                     {{1, 2, 3, 4, 5}}),
            (Numbers{1.5, 3.5, 5}));
}

Graph adaptive(int64_t n, int64_t outputs) {
  GraphWriter g;
  const ValueId x = g.input("x", {1, n, 1}, DType::float64);
  return g.returning({g.call("aten._adaptive_avg_pool2d.default", {Arg{x}, list({outputs, 1})},
                             {1, outputs, 1}, DType::float64)});
}

TEST(LowerPool, SharesPlacesOfUnevenOutputs) {
  EXPECT_EQ(computed(adaptive(5, 3), {{1, 2, 3, 4, 5}}), (Numbers{1.5, 3, 4.5}));
  EXPECT_EQ(computed(adaptive(2, 3), {{1, 3}}), (Numbers{1, 2, 3}));
  const Program even = program_of(adaptive(6, 3));
  EXPECT_EQ(print(even).find("select"), std::string::npos) << print(even);
}

TEST(LowerPool, RefusesWhatDoesNotFit) {
  EXPECT_EQ(refused(max_pool(6, 3, 3, 2, 3, false)),
            "aten.max_pool2d_with_indices.default: its window does not fit");
  EXPECT_EQ(refused(max_pool(6, 3, 3, 0, 3, false)),
            "aten.max_pool2d_with_indices.default: its declared shape is wrong");
  EXPECT_EQ(refused(mean_pool(5, {list({1, 2, 3})}, 5)),
            "aten.avg_pool2d.default: 'kernel_size' does not fit");
}

// --- Attention ----------------------------------------------------------------------------------

// One head of width 1, over so many keys and as many queries.
Graph attention(int64_t keys, bool causal, bool masked, double scale) {
  GraphWriter g;
  const ValueId q = g.input("q", {1, 1, keys, 1}, DType::float64);
  const ValueId k = g.input("k", {1, 1, keys, 1}, DType::float64);
  const ValueId v = g.input("v", {1, 1, keys, 1}, DType::float64);
  std::vector<NamedArg> options = {{"scale", Arg{scale}}};
  if (masked) {
    options.push_back({"attn_mask", Arg{g.input("mask", {keys, keys}, DType::float64)}});
  }
  return g.returning({g.call("aten._scaled_dot_product_flash_attention_for_cpu.default",
                             {Arg{q}, Arg{k}, Arg{v}, Arg{0.0}, Arg{causal}}, {1, 1, keys, 1},
                             DType::float64, options)});
}

TEST(LowerAttention, WeighsValuesByTheSoftmaxOfScaledScores) {
  // Scores are 0 and log 3: weights 1/4 and 3/4.
  const Numbers found =
      computed(attention(2, false, false, 0.5), {{2, 0}, {0, std::log(3.0)}, {4, 8}});
  ASSERT_EQ(found.size(), 2u);
  EXPECT_NEAR(found[0], 7, 1e-12);
  EXPECT_EQ(found[1], 6);
}

TEST(LowerAttention, SeesNoLaterKeyWhenCausal) {
  const Numbers found = computed(attention(3, true, false, 1), {{0, 0, 0}, {0, 0, 0}, {2, 4, 9}});
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0], 2);
  EXPECT_EQ(found[1], 3);
  EXPECT_NEAR(found[2], 5, 1e-12);
}

TEST(LowerAttention, GivesZeroWhereEveryKeyIsMasked) {
  EXPECT_EQ(computed(attention(2, false, true, 1),
                     {{0, 0}, {0, 0}, {4, 8}, {-kInfinity, -kInfinity, 0, -kInfinity}}),
            (Numbers{0, 4}));
}

}  // namespace
}  // namespace ke::ir
