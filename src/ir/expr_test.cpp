// SPDX-License-Identifier: Apache-2.0
//
// Makers, walks, scalar semantics and index simplification.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "base/rng.hpp"
#include "ir/interpret.hpp"
#include "ir/scalar.hpp"

namespace ke::ir {
namespace {

ExprPtr i(int position) { return axis(position); }
ExprPtr c(int64_t value) { return index_constant(value); }
ExprPtr add(ExprPtr a, ExprPtr b) { return binary(BinaryOp::add, a, b); }
ExprPtr mul(ExprPtr a, ExprPtr b) { return binary(BinaryOp::mul, a, b); }
ExprPtr quotient(ExprPtr a, int64_t b) { return binary(BinaryOp::floor_div, a, c(b)); }
ExprPtr rest(ExprPtr a, int64_t b) { return binary(BinaryOp::mod, a, c(b)); }

TEST(Expr, PrintsAsDocumented) {
  const ExprPtr x = load(TensorId{2}, DType::float32, {i(0), add(i(1), c(3))});
  EXPECT_EQ(print(*binary(BinaryOp::add, x, constant(DType::float32, 1))),
            "add(load %2[i0, add(i1, 3)], 1.0:float32)");
  EXPECT_EQ(print(*select(constant_int(DType::boolean, 1), x, x)), "load %2[i0, add(i1, 3)]");
  EXPECT_EQ(print(*cast(DType::int32, x)), "cast(int32, load %2[i0, add(i1, 3)])");
  EXPECT_EQ(print(*constant_int(DType::uint8, 257)), "1:uint8");
  EXPECT_EQ(print(*constant(DType::float64, std::nan(""))), "nan:float64");
}

TEST(Expr, FoldsConstantsAndTrivialIndexArithmetic) {
  EXPECT_EQ(print(*add(i(0), c(0))), "i0");
  EXPECT_EQ(print(*mul(c(1), i(0))), "i0");
  EXPECT_EQ(print(*mul(i(0), c(0))), "0");
  EXPECT_EQ(print(*add(add(i(0), c(2)), c(3))), "add(i0, 5)");
  EXPECT_EQ(print(*binary(BinaryOp::sub, i(0), c(4))), "add(i0, -4)");
  EXPECT_EQ(print(*rest(i(0), 1)), "0");
  EXPECT_EQ(print(*quotient(c(-7), 2)), "-4");
  EXPECT_EQ(print(*rest(c(-7), 2)), "1");
}

TEST(Expr, DoesNotFoldWhatFloatsDistinguish) {
  const ExprPtr x = load(TensorId{0}, DType::float32, {});
  const ExprPtr zero = constant(DType::float32, 0);
  EXPECT_EQ(print(*add(x, zero)), "add(load %0[], 0.0:float32)");  // -0 + 0 is 0
  EXPECT_EQ(print(*mul(x, zero)), "mul(load %0[], 0.0:float32)");  // NaN * 0 is NaN
  EXPECT_EQ(print(*mul(x, constant(DType::float32, 1))), "load %0[]");
  EXPECT_FALSE(same(*zero, *constant(DType::float32, -0.0)));
}

TEST(Expr, LeavesHalfArithmeticToCasts) {
  const ExprPtr third = constant(DType::float16, 1.0 / 3);
  EXPECT_EQ(print(*mul(third, third)), "mul(0.333251953125:float16, 0.333251953125:float16)");
}

TEST(Expr, SubstitutesAxesInSharedTrees) {
  ExprPtr e = i(0);
  for (int depth = 0; depth < 60; ++depth) e = binary(BinaryOp::maximum, e, e);  // 2^60 as a tree
  const ExprPtr moved = substitute_axes(e, {i(3)});
  const Expr* leaf = moved.get();
  while (!leaf->operands.empty()) leaf = leaf->operands[1].get();
  EXPECT_EQ(leaf->axis, 3);
}

TEST(Affine, RecognisesSumsOfScaledAxes) {
  Affine affine;
  ASSERT_TRUE(
      as_affine(*add(mul(add(i(0), c(2)), c(3)), binary(BinaryOp::sub, i(1), i(0))), 2, affine));
  EXPECT_EQ(affine.base, 6);
  EXPECT_EQ(affine.coefficients, (std::vector<int64_t>{2, 1}));
  EXPECT_FALSE(as_affine(*mul(i(0), i(1)), 2, affine));
  EXPECT_FALSE(as_affine(*quotient(i(0), 2), 2, affine));
  EXPECT_FALSE(as_affine(*i(2), 2, affine));
  const ExprPtr large = add(mul(i(0), c(int64_t{1} << 62)), i(1));
  EXPECT_TRUE(as_affine(*large, 2, affine));
  EXPECT_FALSE(as_affine(*mul(large, c(4)), 2, affine));  // a coefficient would overflow
}

TEST(SimplifyIndex, UndoesComposedViews) {
  const std::vector<int64_t> extents{6, 35};
  const ExprPtr flat = add(mul(i(0), c(35)), i(1));
  EXPECT_EQ(print(*simplify_index(quotient(flat, 35), extents)), "i0");
  EXPECT_EQ(print(*simplify_index(rest(flat, 35), extents)), "i1");
  EXPECT_EQ(print(*simplify_index(rest(quotient(flat, 5), 7), extents)), "floor_div(i1, 5)");
  const ExprPtr again = add(mul(quotient(i(1), 5), c(5)), rest(i(1), 5));
  EXPECT_EQ(print(*simplify_index(again, extents)), "i1");
  const ExprPtr three = add(
      add(mul(quotient(i(1), 12), c(12)), mul(rest(quotient(i(1), 4), 3), c(4))), rest(i(1), 4));
  EXPECT_EQ(print(*simplify_index(three, extents)), "i1");
}

TEST(SimplifyIndex, DecidesComparisonsFromRanges) {
  const std::vector<int64_t> extents{6};
  EXPECT_EQ(print(*simplify_index(binary(BinaryOp::lt, i(0), c(6)), extents)), "true");
  EXPECT_EQ(print(*simplify_index(binary(BinaryOp::ge, add(i(0), c(1)), c(0)), extents)), "true");
  EXPECT_EQ(print(*simplify_index(binary(BinaryOp::lt, i(0), c(5)), extents)), "lt(i0, 5)");
  EXPECT_EQ(print(*simplify_index(i(0), {1})), "0");
}

TEST(SimplifyIndex, NeverDividesWhatItCannotBound) {
  const ExprPtr x = load(TensorId{0}, DType::int64, {});
  const ExprPtr e = quotient(mul(x, c(4)), 4);  // wraps for large x
  EXPECT_TRUE(same(*simplify_index(e, {}), *e));
}

ExprPtr random_index(Rng& rng, int depth) {
  if (depth == 0 || rng.chance(0.2))
    return rng.chance(0.7) ? i(static_cast<int>(rng.below(3))) : c(rng.below(41) - 20);
  const ExprPtr a = random_index(rng, depth - 1);
  const auto kind = rng.below(8);
  if (kind == 0) return add(a, random_index(rng, depth - 1));
  if (kind == 1) return binary(BinaryOp::sub, a, random_index(rng, depth - 1));
  if (kind == 2) return mul(a, c(rng.below(13) - 3));
  if (kind <= 4) return quotient(a, 1 + rng.below(12));
  if (kind <= 6) return rest(a, 1 + rng.below(12));
  return binary(rng.chance(0.5) ? BinaryOp::maximum : BinaryOp::minimum, a,
                random_index(rng, depth - 1));
}

std::vector<TensorBytes> values_of(const ExprPtr& e, const std::vector<int64_t>& extents) {
  Program program;
  program.tensors.push_back({.name = "y",
                             .dtype = e->dtype,
                             .shape = extents,
                             .strides = contiguous_strides(extents),
                             .role = Role::output,
                             .values = {}});
  Stage stage;
  stage.output = TensorId{0};
  for (size_t a = 0; a < extents.size(); ++a) {
    stage.parallel.push_back({fmt::format("i{}", a), extents[a]});
  }
  stage.body = e;
  program.stages.push_back(stage);
  program.outputs = {TensorId{0}};
  return interpret(program, {}).value();
}

TEST(SimplifyIndex, KeepsTheValueOfRandomExpressions) {
  for (uint64_t seed = 1; seed <= 3000; ++seed) {
    Rng rng(seed);
    const std::vector<int64_t> extents{1 + rng.below(6), 1 + rng.below(12), 1 + rng.below(4)};
    ExprPtr e = random_index(rng, 5);
    if (rng.chance(0.3)) e = binary(BinaryOp::lt, e, random_index(rng, 3));
    const ExprPtr simple = simplify_index(e, extents);
    ASSERT_EQ(values_of(e, extents), values_of(simple, extents))
        << "seed " << seed << ": " << print(*e) << " became " << print(*simple);
  }
}

Scalar real(double value) { return {.real = value, .integer = 0}; }
Scalar whole(int64_t value) { return {.real = 0, .integer = value}; }
double real_of(BinaryOp op, double a, double b) {
  return evaluate(op, DType::float64, real(a), real(b)).real;
}
int64_t whole_of(BinaryOp op, DType dtype, int64_t a, int64_t b) {
  return evaluate(op, dtype, whole(a), whole(b)).integer;
}

TEST(Scalar, FollowsPythonForFloorDivisionAndModulo) {
  EXPECT_EQ(whole_of(BinaryOp::floor_div, DType::int64, -7, 2), -4);
  EXPECT_EQ(whole_of(BinaryOp::mod, DType::int64, -7, 2), 1);
  EXPECT_EQ(whole_of(BinaryOp::div, DType::int64, -7, 2), -3);
  EXPECT_EQ(whole_of(BinaryOp::fmod, DType::int64, -7, 2), -1);
  EXPECT_EQ(real_of(BinaryOp::floor_div, -7, 2), -4);
  EXPECT_EQ(real_of(BinaryOp::mod, -7, 2), 1);
  EXPECT_EQ(real_of(BinaryOp::fmod, -7, 2), -1);
}

TEST(Scalar, WrapsIntegersToTheirWidth) {
  EXPECT_EQ(whole_of(BinaryOp::add, DType::int8, 127, 1), -128);
  EXPECT_EQ(whole_of(BinaryOp::sub, DType::uint8, 0, 1), 255);
  const int64_t least = std::numeric_limits<int64_t>::min();
  EXPECT_EQ(whole_of(BinaryOp::sub, DType::int64, least, 1), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(whole_of(BinaryOp::div, DType::int64, least, -1), least);
  EXPECT_EQ(whole_of(BinaryOp::shift_left, DType::int64, 1, 64), 0);
  EXPECT_EQ(whole_of(BinaryOp::shift_right, DType::int32, -1, 70), -1);
  EXPECT_EQ(whole_of(BinaryOp::pow, DType::int64, 3, 5), 243);
}

TEST(Scalar, PropagatesNanInExtremes) {
  const double nan = std::nan("");
  EXPECT_TRUE(std::isnan(real_of(BinaryOp::maximum, nan, 1)));
  EXPECT_TRUE(std::isnan(real_of(BinaryOp::minimum, 1, nan)));
  EXPECT_EQ(evaluate(UnaryOp::sign, DType::float32, real(nan)).real, 0);
}

TEST(Scalar, RoundsHalvesToNearestEven) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto narrow = static_cast<uint16_t>(bits);
    const float wide = half_value(narrow), brain = bfloat_value(narrow);
    ASSERT_TRUE(std::isnan(wide) || half_bits(wide) == narrow) << bits;
    ASSERT_TRUE(std::isnan(brain) || bfloat_bits(brain) == narrow) << bits;
  }
  EXPECT_EQ(half_value(half_bits(2049.0f)), 2048.0f);
  EXPECT_EQ(half_value(half_bits(2051.0f)), 2052.0f);
  EXPECT_EQ(half_value(half_bits(65519.0f)), 65504.0f);
  EXPECT_TRUE(std::isinf(half_value(half_bits(65520.0f))));
  EXPECT_TRUE(std::isnan(half_value(half_bits(std::nanf("")))));
}

}  // namespace
}  // namespace ke::ir
