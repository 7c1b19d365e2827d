// SPDX-License-Identifier: Apache-2.0
//
// What is spared of graphs that fold, and that nothing is spared of graphs that look alike but do
// not. A property over random chains shows that folding is sound: what folds over an axis does not
// notice a change of the operand that leaves its sums over the axis as they were.
#include "ir/foldable.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "base/rng.hpp"
#include "graph_writer.hpp"
#include "ir/interpret.hpp"
#include "ir/lower/lower.hpp"
#include "ir/needed.hpp"

namespace ke::ir {
namespace {

using testing_support::GraphWriter;
using testing_support::integer;
using testing_support::list;

constexpr int64_t kM = 8, kK = 16, kN = 32;
constexpr int64_t kProduct = 2 * kM * kK * kN;

// x[8, 16] w[16, 32], whose result is 256 elements.
struct Linear {
  GraphWriter g;
  ValueId x, w, y;

  Linear() {
    x = g.input("x", {kM, kK});
    w = g.input("w", {kK, kN});
    y = g.call("aten.mm.default", {Arg{x}, Arg{w}}, {kM, kN});
    g.costs(kProduct);
  }

  ValueId sum(ValueId from, std::vector<int64_t> dims, std::vector<int64_t> shape) {
    return g.call("aten.sum.dim_IntList", {Arg{from}, list(std::move(dims))}, std::move(shape));
  }
  ValueId map(std::string op, std::vector<Arg> more = {}) {
    more.insert(more.begin(), Arg{y});
    return y = g.call(std::move(op), std::move(more), {kM, kN});
  }
  int64_t spared(ValueId out) { return spared_flops(g.returning({out})); }
};

// What is left of a product whose one operand is summed first.
constexpr int64_t kOverColumns = kK * kN + 2 * kM * kK;
constexpr int64_t kOverRows = kM * kK + 2 * kK * kN;

TEST(Foldable, SumsColumnsOfTheRightOperandFirst) {
  Linear l;
  EXPECT_EQ(l.spared(l.sum(l.y, {1}, {kM})), kProduct - kOverColumns);
}

TEST(Foldable, SumsRowsOfTheLeftOperandFirst) {
  Linear l;
  EXPECT_EQ(l.spared(l.sum(l.y, {-2}, {kN})), kProduct - kOverRows);
}

TEST(Foldable, SumsBothForAMeanOverAll) {
  Linear l;
  const ValueId out = l.g.call("aten.mean.default", {Arg{l.y}}, {});
  EXPECT_EQ(l.spared(out), kProduct - (kK * kN + kM * kK + 2 * kK));
}

TEST(Foldable, FollowsScalesBiasesAndViews) {
  Linear l;
  const ValueId bias = l.g.input("bias", {kN}), full = l.g.input("full", {kM, kN});
  l.map("aten.div.Tensor", {Arg{2.0}});
  l.map("aten.neg.default");
  l.map("aten.add.Tensor", {Arg{bias}});
  l.map("aten.sub.Tensor", {Arg{full}});
  ValueId v = l.g.call("aten.view.default", {Arg{l.y}, list({2, 4, kN})}, {2, 4, kN});
  v = l.g.call("aten.permute.default", {Arg{v}, list({2, 0, 1})}, {kN, 2, 4});
  v = l.g.call("aten.unsqueeze.default", {Arg{v}, integer(0)}, {1, kN, 2, 4});
  EXPECT_EQ(l.spared(l.sum(v, {1}, {1, 2, 4})), kProduct - kOverColumns);
}

TEST(Foldable, ScalesTheWorkOnTheWayWithTheProduct) {
  Linear l;
  l.map("aten.mul.Tensor", {Arg{2.0}});
  l.g.costs(kM * kN);
  EXPECT_EQ(l.spared(l.sum(l.y, {1}, {kM})), kProduct - kOverColumns + kM * kN - kM);
}

TEST(Foldable, FoldsByWindowsOfAnAveragePool) {
  Linear l;
  ValueId v = l.g.call("aten.unsqueeze.default", {Arg{l.y}, integer(0)}, {1, kM, kN});
  v = l.g.call("aten.avg_pool1d.default", {Arg{v}, list({4})}, {1, kM, kN / 4});
  EXPECT_EQ(l.spared(v), kProduct - (kK * kN + 2 * kM * kK * kN / 4));
}

TEST(Foldable, FoldsEachUseOfItsOwnSums) {
  Linear l;
  const ValueId rows = l.sum(l.y, {0}, {kN}), columns = l.sum(l.y, {1}, {kM});
  EXPECT_EQ(spared_flops(l.g.returning({rows, columns})), kProduct - kOverColumns - kOverRows);
}

TEST(Foldable, FoldsASumLessItsOwnMeanSummedAgain) {
  Linear l;
  const ValueId mean = l.g.call("aten.mean.dim", {Arg{l.y}, list({1}), Arg{true}}, {kM, 1});
  l.map("aten.sub.Tensor", {Arg{mean}});
  EXPECT_EQ(l.spared(l.sum(l.y, {1}, {kM})), kProduct - 2 * kOverColumns);
}

TEST(Foldable, LeavesAloneWhatIsNotLinear) {
  for (const char* op : {"aten.relu.default", "aten.gelu.default", "aten.sigmoid.default",
                         "aten.abs.default", "aten.exp.default", "aten.foo.default"}) {
    SCOPED_TRACE(op);
    Linear l;
    l.map(op);
    EXPECT_EQ(l.spared(l.sum(l.y, {1}, {kM})), 0);
  }
  Linear softmax;
  softmax.map("aten._softmax.default", {integer(1), Arg{false}});
  EXPECT_EQ(softmax.spared(softmax.sum(softmax.y, {1}, {kM})), 0);
  Linear square;
  square.y = square.g.call("aten.mul.Tensor", {Arg{square.y}, Arg{square.y}}, {kM, kN});
  EXPECT_EQ(square.spared(square.sum(square.y, {1}, {kM})), 0);
  Linear inverse;
  inverse.y = inverse.g.call("aten.div.Tensor", {Arg{inverse.w}, Arg{inverse.y}}, {kM, kN});
  EXPECT_EQ(inverse.spared(inverse.sum(inverse.y, {1}, {kM})), 0);
  Linear rounded;
  rounded.y = rounded.g.call("aten.div.Tensor_mode", {Arg{rounded.y}, Arg{2.0}}, {kM, kN},
                             DType::float32, {{"rounding_mode", Arg{std::string("floor")}}});
  EXPECT_EQ(rounded.spared(rounded.sum(rounded.y, {1}, {kM})), 0);
  Linear whole;
  whole.y = whole.g.call("aten._to_copy.default", {Arg{whole.y}}, {kM, kN}, DType::int64);
  EXPECT_EQ(whole.spared(whole.sum(whole.y, {1}, {kM})), 0);
  Linear joined;
  const std::vector<Arg> twice = {Arg{joined.y}, Arg{joined.y}};
  joined.y = joined.g.call("aten.cat.default", {Arg{twice}}, {2 * kM, kN});
  EXPECT_EQ(joined.spared(joined.sum(joined.y, {1}, {2 * kM})), 0);
}

TEST(Foldable, LeavesAloneWhatIsAlsoNeededUnsummed) {
  Linear l;
  const ValueId sum = l.sum(l.y, {1}, {kM});
  EXPECT_EQ(spared_flops(l.g.returning({sum, l.y})), 0);
  Linear centred;  // y - mean(y)
  const ValueId mean =
      centred.g.call("aten.mean.dim", {Arg{centred.y}, list({1}), Arg{true}}, {kM, 1});
  EXPECT_EQ(centred.spared(centred.map("aten.sub.Tensor", {Arg{mean}})), 0);
}

TEST(Foldable, LeavesAloneSumsOfDifferentlyScaledElements) {
  Linear across;
  const ValueId full = across.g.input("full", {kM, kN});
  across.map("aten.mul.Tensor", {Arg{full}});
  EXPECT_EQ(across.spared(across.sum(across.y, {1}, {kM})), 0);
  Linear along;  // one factor a row does not hinder the sum of each row
  const ValueId rows = along.g.input("rows", {kM, 1});
  along.map("aten.mul.Tensor", {Arg{rows}});
  EXPECT_EQ(along.spared(along.sum(along.y, {1}, {kM})), kProduct - kOverColumns);
}

TEST(Foldable, LeavesAloneABatchThatBothOperandsHave) {
  GraphWriter g;
  const ValueId a = g.input("a", {4, kM, kK}), b = g.input("b", {4, kK, kN});
  const ValueId y = g.call("aten.bmm.default", {Arg{a}, Arg{b}}, {4, kM, kN});
  g.costs(4 * kProduct);
  const ValueId over_batch = g.call("aten.sum.dim_IntList", {Arg{y}, list({0})}, {kM, kN});
  EXPECT_EQ(spared_flops(g.returning({over_batch})), 0);
  const ValueId over_columns = g.call("aten.sum.dim_IntList", {Arg{y}, list({2})}, {4, kM});
  EXPECT_EQ(spared_flops(g.returning({over_columns})), 4 * (kProduct - kOverColumns));
}

// --- Convolutions -------------------------------------------------------------------------------

struct Convolution {
  GraphWriter g;
  ValueId y;
  int64_t cost = 0;

  // x[2, 4, 9, 9] with a 3 x 3 window to y[2, 6, places, places].
  Convolution(bool transposed, int64_t stride, int64_t padding, int64_t places,
              int64_t groups = 1) {
    const ValueId x = g.input("x", {2, 4, 9, 9});
    const std::vector<int64_t> kernel = transposed ? std::vector<int64_t>{4, 6 / groups, 3, 3}
                                                   : std::vector<int64_t>{6, 4 / groups, 3, 3};
    const ValueId w = g.input("w", kernel);
    y = g.call("aten.convolution.default",
               {Arg{x}, Arg{w}, Arg{}, list({stride, stride}), list({padding, padding}),
                list({1, 1}), Arg{transposed}, list({0, 0}), integer(groups)},
               {2, 6, places, places});
    const int64_t products = transposed ? 2 * 4 * 81 * 6 : 2 * 6 * places * places * 4;
    cost = 2 * products / groups * 9;
    g.costs(cost);
  }

  int64_t left(std::vector<int64_t> dims, std::vector<int64_t> shape) {
    const ValueId mean = g.call("aten.mean.dim", {Arg{y}, list(std::move(dims))}, std::move(shape));
    return cost - spared_flops(g.returning({mean}));
  }
};

constexpr int64_t kInput = 2 * 4 * 81, kWeights = 4 * 6 * 9;

TEST(Foldable, TurnsAGlobalMeanOfAConvolutionIntoAProductOfSums) {
  EXPECT_EQ(Convolution(false, 1, 0, 7).left({2, 3}, {2, 6}), kInput + 2 * 2 * 6 * 4 * 9);
  // Nothing is cropped: all taps see all of the input, and their weights are summed first.
  EXPECT_EQ(Convolution(true, 2, 0, 19).left({2, 3}, {2, 6}), kInput + kWeights + 2 * 2 * 6 * 4);
  // Cropped by one on each side: the first tap misses the first row, the last tap the last.
  EXPECT_EQ(Convolution(true, 2, 1, 17).left({2, 3}, {2, 6}), kInput + 2 * 2 * 6 * 4 * 9);
}

TEST(Foldable, LeavesAloneAConvolutionThatNothingSums) {
  // Written as a scatter it computes more than it keeps, but no algebra spares that.
  Convolution cropped(true, 1, 2, 7);
  EXPECT_EQ(spared_flops(cropped.g.returning({cropped.y})), 0);
}

TEST(Foldable, SumsChannelsOfAConvolutionInItsWeights) {
  EXPECT_EQ(Convolution(false, 1, 0, 7).left({1}, {2, 7, 7}), kWeights + 2 * 2 * 49 * 4 * 9);
  // Channels of different groups have no weights in common: six become two, not one.
  EXPECT_EQ(Convolution(false, 1, 0, 7, 2).left({1}, {2, 7, 7}),
            kWeights / 2 + 2 * 2 * 2 * 49 * 2 * 9);
}

TEST(Foldable, FoldsAnAveragePoolBehindAConvolution) {
  Convolution c(false, 1, 1, 9);
  const ValueId pooled =
      c.g.call("aten.avg_pool2d.default", {Arg{c.y}, list({3, 3})}, {2, 6, 3, 3});
  EXPECT_EQ(c.cost - spared_flops(c.g.returning({pooled})), kInput + c.cost / 9);
  Convolution whole(false, 1, 1, 9);
  const ValueId one =
      whole.g.call("aten._adaptive_avg_pool2d.default", {Arg{whole.y}, list({1, 1})}, {2, 6, 1, 1});
  EXPECT_EQ(whole.cost - spared_flops(whole.g.returning({one})), kInput + 2 * 2 * 6 * 4 * 9);
}

// --- Dead code ----------------------------------------------------------------------------------

TEST(Foldable, SparesDeadCode) {
  Linear l;
  const ValueId out = l.g.call("aten.relu.default", {Arg{l.x}}, {kM, kK});
  EXPECT_EQ(l.spared(out), kProduct);
}

TEST(Needed, KnowsThatAValueMinusItselfIsConstant) {
  Linear l;
  const ValueId most = l.g.call("aten.amax.default", {Arg{l.y}, list({1}), Arg{true}}, {kM, 1});
  const ValueId mean = l.g.call("aten.mean.dim", {Arg{most}, list({1}), Arg{true}}, {kM, 1});
  const ValueId zero = l.g.call("aten.sub.Tensor", {Arg{most}, Arg{mean}}, {kM, 1});
  const Graph graph = l.g.returning({l.g.call("aten.gelu.default", {Arg{zero}}, {kM, 1})});
  EXPECT_EQ(spared_flops(graph), kProduct);
  const Needed needed = needed_by_outputs(graph);
  EXPECT_FALSE(needed.values[static_cast<size_t>(l.x.index)]);
  EXPECT_TRUE(needed.values[static_cast<size_t>(zero.index)]);
}

TEST(Needed, KeepsAMeanOfSeveralAndAnOuterDifference) {
  Linear l;
  const ValueId mean = l.g.call("aten.mean.dim", {Arg{l.y}, list({1}), Arg{true}}, {kM, 1});
  EXPECT_EQ(l.spared(l.map("aten.sub.Tensor", {Arg{mean}})), 0);
  Linear outer;  // v[m] - v[n] of one vector
  const ValueId v = outer.sum(outer.w, {1}, {kK});
  const ValueId column = outer.g.call("aten.unsqueeze.default", {Arg{v}, integer(1)}, {kK, 1});
  const ValueId all = outer.g.call("aten.sub.Tensor", {Arg{column}, Arg{v}}, {kK, kK});
  const Needed needed = needed_by_outputs(outer.g.returning({all}));
  EXPECT_TRUE(needed.values[static_cast<size_t>(outer.w.index)]);
}

TEST(Needed, KnowsThatASoftmaxOfSingleElementsIsConstant) {
  for (const int64_t dim : {0, 1, -1}) {
    SCOPED_TRACE(dim);
    Linear l;
    const ValueId sum = l.sum(l.y, {1}, {kM, 1});
    const ValueId soft =
        l.g.call("aten._softmax.default", {Arg{sum}, integer(dim), Arg{false}}, {kM, 1});
    const Needed needed = needed_by_outputs(l.g.returning({soft}));
    EXPECT_EQ(needed.values[static_cast<size_t>(l.x.index)], dim == 0);
  }
}

// --- Soundness ----------------------------------------------------------------------------------

// A random chain of operations over x[4, 3] w[3, 4], most of them linear, and an output that sums.
class RandomChain {
 public:
  explicit RandomChain(Rng& rng) : rng_(rng) {
    const ValueId x = g_.input("x", {4, 3}), w = g_.input("w", {3, 4});
    shape_ = {4, 4};
    y_ = g_.call("aten.mm.default", {Arg{x}, Arg{w}}, shape_);
    g_.costs(2 * 4 * 3 * 4);
    const int64_t steps = rng_.below(6);
    for (int64_t i = 0; i < steps; ++i) step();
    const int64_t rank = static_cast<int64_t>(shape_.size());
    if (rng_.below(4) != 0) sum(static_cast<size_t>(rng_.below(rank)));
    for (int64_t i = rng_.below(3); i > 0; --i) step();
  }

  Graph graph() { return g_.returning({y_}); }
  bool linear() const { return linear_; }

 private:
  void then(std::string op, std::vector<Arg> more = {}) {
    more.insert(more.begin(), Arg{y_});
    y_ = g_.call(std::move(op), std::move(more), shape_);
  }

  void step() {
    switch (rng_.below(9)) {
      case 0:
        return then("aten.mul.Tensor", {Arg{0.5}});
      case 1:
        return then("aten.neg.default");
      case 2:
        return then("aten.add.Tensor", {Arg{g_.input("b", {shape_.back()})}});
      case 3: {
        std::vector<int64_t> column(shape_.size(), 1);
        column.front() = shape_.front();
        return then("aten.mul.Tensor", {Arg{g_.input("s", std::move(column))}});
      }
      case 4:
        std::reverse(shape_.begin(), shape_.end());
        return shape_.size() == 2 ? then("aten.permute.default", {list({1, 0})})
                                  : then("aten.permute.default", {list({2, 1, 0})});
      case 5:
        return view();
      case 6:
        return rng_.below(3) == 0 ? sum(0) : then("aten.clone.default");
      case 7:
        linear_ = false;
        return then("aten.relu.default");
      default: {
        const ValueId before = y_;
        then("aten.neg.default");
        return then("aten.sub.Tensor", {Arg{before}});
      }
    }
  }

  // Between [a, b] and [2, a / 2, b]; dimensions of one stay.
  void view() {
    if (shape_.size() == 3) {
      shape_ = {shape_[0] * shape_[1], shape_[2]};
    } else if (shape_[0] % 2 == 0) {
      shape_ = {2, shape_[0] / 2, shape_[1]};
    } else {
      return;
    }
    std::vector<int64_t> extents = shape_;
    then("aten.view.default", {list(std::move(extents))});
  }

  void sum(size_t dim) {
    shape_[dim] = 1;
    then("aten.sum.dim_IntList", {list({static_cast<int64_t>(dim)}), Arg{true}});
  }

  Rng& rng_;
  GraphWriter g_;
  ValueId y_;
  std::vector<int64_t> shape_;
  bool linear_ = true;
};

TensorBytes bytes_of_floats(const std::vector<float>& values) {
  TensorBytes bytes(values.size() * sizeof(float));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

// Small whole numbers: every result is exact, so that equal means equal.
std::vector<float> small_numbers(Rng& rng, int64_t count) {
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(static_cast<float>(rng.below(17)) - 8.0F);
  return values;
}

TEST(Foldable, IsSoundOnRandomChains) {
  // Adds nothing to any sum over 4, over its halves nor over its even and odd steps.
  constexpr float kZeroSum[] = {16, -16, -16, 16};
  int folded = 0, unfolded = 0, bent = 0;
  for (uint64_t seed = 0; seed < 600; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    RandomChain chain(rng);
    const Graph graph = chain.graph();
    const Result<Program> program = lower(graph);
    ASSERT_TRUE(program) << program.error().to_string();
    std::vector<TensorBytes> inputs;
    std::vector<float> x, w;
    for (const GraphInput& input : graph.inputs) {
      std::vector<float> values = small_numbers(rng, element_count(value_of(graph, input.value)));
      if (inputs.empty()) x = values;
      if (inputs.size() == 1) w = values;
      inputs.push_back(bytes_of_floats(values));
    }
    const auto expected = interpret(*program, inputs);
    ASSERT_TRUE(expected);
    for (int row = 0; row < 4; ++row) {
      for (int k = 0; k < 3; ++k) {
        x[static_cast<size_t>(row * 3 + k)] += kZeroSum[row];
        w[static_cast<size_t>(k * 4 + row)] += kZeroSum[row];
      }
    }
    std::vector<TensorBytes> other_x = inputs, other_w = inputs;
    other_x[0] = bytes_of_floats(x);
    other_w[1] = bytes_of_floats(w);
    const auto with_x = interpret(*program, other_x), with_w = interpret(*program, other_w);
    ASSERT_TRUE(with_x && with_w);
    const bool indifferent = *with_x == *expected || *with_w == *expected;
    const bool folds = spared_flops(graph) > 0;
    EXPECT_TRUE(indifferent || !folds) << print(graph);
    folded += folds;
    unfolded += !folds && !indifferent;
    bent += !chain.linear() && !folds;
  }
  EXPECT_GT(folded, 100);
  EXPECT_GT(unfolded, 100);
  EXPECT_GT(bent, 50);
}

}  // namespace
}  // namespace ke::ir
