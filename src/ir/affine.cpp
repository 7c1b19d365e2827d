// SPDX-License-Identifier: Apache-2.0
//
// Recognises index expressions that are affine in the axes.
#include "ir/expr.hpp"

namespace ke::ir {
namespace {

bool scale(Affine& a, int64_t factor) {
  bool fits = !__builtin_mul_overflow(a.base, factor, &a.base);
  for (int64_t& c : a.coefficients) fits &= !__builtin_mul_overflow(c, factor, &c);
  return fits;
}

bool accumulate(Affine& a, const Affine& b) {
  bool fits = !__builtin_add_overflow(a.base, b.base, &a.base);
  for (size_t i = 0; i < a.coefficients.size(); ++i) {
    fits &= !__builtin_add_overflow(a.coefficients[i], b.coefficients[i], &a.coefficients[i]);
  }
  return fits;
}

bool is_pure_constant(const Affine& a) {
  for (int64_t c : a.coefficients) {
    if (c != 0) return false;
  }
  return true;
}

bool combine(BinaryOp op, Affine& a, Affine& b) {
  if (op == BinaryOp::add) return accumulate(a, b);
  if (op == BinaryOp::sub) return scale(b, -1) && accumulate(a, b);
  if (op != BinaryOp::mul) return false;
  if (is_pure_constant(b)) return scale(a, b.base);
  if (!is_pure_constant(a)) return false;
  const int64_t factor = a.base;
  a = b;
  return scale(a, factor);
}

}  // namespace

bool as_affine(const Expr& expr, int axis_count, Affine& affine) {
  affine.base = 0;
  affine.coefficients.assign(static_cast<size_t>(axis_count), 0);
  if (expr.dtype != DType::int64) return false;
  if (expr.kind == Expr::Kind::constant) {
    affine.base = expr.int_value;
    return true;
  }
  if (expr.kind == Expr::Kind::axis) {
    if (expr.axis >= axis_count) return false;
    affine.coefficients[static_cast<size_t>(expr.axis)] = 1;
    return true;
  }
  if (expr.kind == Expr::Kind::unary && expr.unary == UnaryOp::neg) {
    return as_affine(*expr.operands[0], axis_count, affine) && scale(affine, -1);
  }
  if (expr.kind != Expr::Kind::binary) return false;
  if (expr.binary > BinaryOp::mul) return false;
  Affine right;
  return as_affine(*expr.operands[0], axis_count, affine) &&
         as_affine(*expr.operands[1], axis_count, right) && combine(expr.binary, affine, right);
}

}  // namespace ke::ir
