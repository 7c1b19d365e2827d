// SPDX-License-Identifier: Apache-2.0
//
// Scalar expressions: the body of a tensor expression. Immutable, shared, typed. Everything that
// shapes and dtypes do in PyTorch (promotion, broadcasting, views) is already resolved here, so
// that operands of one operation always have the same dtype and indices are plain int64 arithmetic.
//
// Evaluation rules, which the interpreter defines and every target must match:
//  - select is lazy: only the chosen side is evaluated (its loads may be out of range otherwise).
//  - float16/bfloat16 arithmetic is done in float32 and rounded once at the cast or store.
//  - max/min propagate NaN, as torch.maximum does. Comparisons yield boolean.
//  - integer div truncates; floor_div and mod follow Python. Signed overflow wraps.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/enum_names.hpp"
#include "ir/dtype.hpp"

namespace ke::ir {

// Index into Program::tensors.
struct TensorId {
  int index = -1;
  auto operator<=>(const TensorId&) const = default;
};

enum class UnaryOp : uint8_t {
  neg,
  abs,
  exp,
  exp2,
  expm1,
  log,
  log2,
  log10,
  log1p,
  sqrt,
  rsqrt,
  sin,
  cos,
  tan,
  asin,
  acos,
  atan,
  sinh,
  cosh,
  tanh,
  asinh,
  acosh,
  atanh,
  erf,
  floor,
  ceil,
  trunc,
  round,
  sign,
  logical_not,
  bit_not,
  is_nan,
  is_inf
};

enum class BinaryOp : uint8_t {
  add,
  sub,
  mul,
  div,
  floor_div,
  mod,
  fmod,
  pow,
  maximum,
  minimum,
  atan2,
  copysign,
  eq,
  ne,
  lt,
  le,
  gt,
  ge,
  logical_and,
  logical_or,
  logical_xor,
  bit_and,
  bit_or,
  bit_xor,
  shift_left,
  shift_right
};

struct Expr;
using ExprPtr = std::shared_ptr<const Expr>;

struct Expr {
  enum class Kind : uint8_t { constant, axis, load, unary, binary, select, cast };

  Kind kind = Kind::constant;
  DType dtype = DType::float32;
  double float_value = 0;  // constant of a floating dtype
  int64_t int_value = 0;   // constant of an integral or boolean dtype
  int axis = -1;           // axis: position in [parallel..., reduction...] of the stage
  TensorId tensor;         // load
  UnaryOp unary = UnaryOp::neg;
  BinaryOp binary = BinaryOp::add;
  std::vector<ExprPtr>
      operands;  // load: one int64 index a dimension; select: condition, then, else
};

// --- Makers (they fold constants and the trivial identities of index arithmetic) ---------------
ExprPtr constant(DType dtype, double value);
ExprPtr constant_int(DType dtype, int64_t value);
ExprPtr index_constant(int64_t value);  // int64
ExprPtr axis(int position);             // int64
ExprPtr load(TensorId tensor, DType dtype, std::vector<ExprPtr> indices);
ExprPtr unary(UnaryOp op, ExprPtr a);
ExprPtr binary(BinaryOp op, ExprPtr a, ExprPtr b);
ExprPtr select(ExprPtr condition, ExprPtr then_value, ExprPtr else_value);
ExprPtr cast(DType dtype, ExprPtr a);  // no-op when the dtype is already that
// The same node over other operands (same count and dtypes), through its maker.
ExprPtr with_operands(const Expr& expr, std::vector<ExprPtr> operands);

// --- Walks --------------------------------------------------------------------------------------
bool same(const Expr& a, const Expr& b);  // structural equality
std::string print(const Expr& expr);      // "add(load %2[i0, i1], 1.0:float32)"
// Replaces axis k by replacements[k] (null keeps it) throughout.
ExprPtr substitute_axes(const ExprPtr& expr, const std::vector<ExprPtr>& replacements);
// Calls visit on every node, parents first.
template <class Visitor>
void walk(const ExprPtr& expr, const Visitor& visit) {
  visit(*expr);
  for (const ExprPtr& operand : expr->operands) walk(operand, visit);
}

// The expression as base + sum(coefficient[k] * axis k), when it is that.
struct Affine {
  int64_t base = 0;
  std::vector<int64_t> coefficients;  // one an axis
};
bool as_affine(const Expr& expr, int axis_count, Affine& affine);

// Equal value for every axis k in [0, extents[k]), in fewer operations: int64 arithmetic becomes a
// sum of terms, floor_div and mod of it fold where the ranges allow (so composed views disappear),
// and comparisons decided by the ranges become constants. Axes beyond `extents` are unbounded.
ExprPtr simplify_index(const ExprPtr& expr, const std::vector<int64_t>& extents);

}  // namespace ke::ir

template <>
inline constexpr std::array<std::string_view, 33> ke::kEnumNames<ke::ir::UnaryOp>{
    "neg",   "abs",   "exp",         "exp2",    "expm1",  "log",   "log2",  "log10", "log1p",
    "sqrt",  "rsqrt", "sin",         "cos",     "tan",    "asin",  "acos",  "atan",  "sinh",
    "cosh",  "tanh",  "asinh",       "acosh",   "atanh",  "erf",   "floor", "ceil",  "trunc",
    "round", "sign",  "logical_not", "bit_not", "is_nan", "is_inf"};
template <>
inline constexpr std::array<std::string_view, 26> ke::kEnumNames<ke::ir::BinaryOp>{
    "add",     "sub",     "mul",     "div",        "floor_div",   "mod",        "fmod",
    "pow",     "maximum", "minimum", "atan2",      "copysign",    "eq",         "ne",
    "lt",      "le",      "gt",      "ge",         "logical_and", "logical_or", "logical_xor",
    "bit_and", "bit_or",  "bit_xor", "shift_left", "shift_right"};
