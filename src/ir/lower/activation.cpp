// SPDX-License-Identifier: Apache-2.0
//
// Activations that core ATen keeps whole. Formulas are those of ATen's CPU kernels, so that NaN and
// infinities come out the same.
#include <cmath>
#include <numbers>

#include "ir/lower/call.hpp"

namespace ke::ir {
namespace {

// A scalar expression in one dtype, so that formulas read as formulas.
struct Term {
  ExprPtr expr;

  friend Term operator+(const Term& a, const Term& b) {
    return {binary(BinaryOp::add, a.expr, b.expr)};
  }
  friend Term operator*(const Term& a, const Term& b) {
    return {binary(BinaryOp::mul, a.expr, b.expr)};
  }
  friend Term operator/(const Term& a, const Term& b) {
    return {binary(BinaryOp::div, a.expr, b.expr)};
  }
  Term constant(double value) const { return {number(expr->dtype, value)}; }
  Term apply(UnaryOp op) const { return {unary(op, expr)}; }
  Term above(double low) const {
    return {binary(BinaryOp::maximum, expr, number(expr->dtype, low))};
  }
  Term below(double high) const {
    return {binary(BinaryOp::minimum, expr, number(expr->dtype, high))};
  }
};

Term choose(const Term& condition, const Term& then_value, const Term& else_value) {
  return {select(condition.expr, then_value.expr, else_value.expr)};
}
Term greater(const Term& a, double b) {
  return {binary(BinaryOp::gt, a.expr, number(a.expr->dtype, b))};
}

Term sigmoid(const Term& x) {
  return x.constant(1) / (x.constant(1) + x.apply(UnaryOp::neg).apply(UnaryOp::exp));
}

using Formula = Result<Term> (*)(const Call& call, const Term& x);

Result<Term> relu(const Call&, const Term& x) { return x.above(0); }

Result<Term> sigmoid_formula(const Call&, const Term& x) { return sigmoid(x); }

Result<Term> silu(const Call&, const Term& x) { return x * sigmoid(x); }

Result<Term> leaky_relu(const Call& call, const Term& x) {
  const double slope = TRY(call.number(1, "negative_slope", 0.01));
  return choose(greater(x, 0), x, x * x.constant(slope));
}

// x > 0 ? x * scale : expm1(x * input_scale) * alpha * scale
Result<Term> elu(const Call& call, const Term& x) {
  const double alpha = TRY(call.number(1, "alpha", 1.0));
  const double scale = TRY(call.number(2, "scale", 1.0));
  const double input_scale = TRY(call.number(3, "input_scale", 1.0));
  const Term negative = (x * x.constant(input_scale)).apply(UnaryOp::expm1);
  return choose(greater(x, 0), x * x.constant(scale), negative * x.constant(alpha * scale));
}

Result<Term> gelu(const Call& call, const Term& x) {
  const std::string kind = TRY(call.text(1, "approximate", "none"));
  const Term half = x.constant(0.5), one = x.constant(1);
  if (kind == "none") {
    return x * half * (one + (x * x.constant(std::numbers::sqrt2 / 2)).apply(UnaryOp::erf));
  }
  if (kind != "tanh") return call.wrong("its approximation is unknown");
  const Term inner = x + x.constant(0.044715) * x * x * x;
  const Term scaled = x.constant(std::sqrt(2.0 / std::numbers::pi)) * inner;
  return half * x * (one + scaled.apply(UnaryOp::tanh));
}

Result<Term> hardtanh(const Call& call, const Term& x) {
  const double low = TRY(call.number(1, "min_val", -1.0));
  const double high = TRY(call.number(2, "max_val", 1.0));
  return x.above(low).below(high);
}

Result<Term> relu6(const Call&, const Term& x) { return x.above(0).below(6); }

Result<Term> hardsigmoid(const Call&, const Term& x) {
  return (x + x.constant(3)).above(0).below(6) / x.constant(6);
}

Result<Term> hardswish(const Call&, const Term& x) {
  return x * (x + x.constant(3)).above(0).below(6) / x.constant(6);
}

// x * beta > threshold ? x : log1p(exp(x * beta)) / beta
Result<Term> softplus(const Call& call, const Term& x) {
  const double beta = TRY(call.number(1, "beta", 1.0));
  const double threshold = TRY(call.number(2, "threshold", 20.0));
  const Term scaled = x * x.constant(beta);
  const Term soft = scaled.apply(UnaryOp::exp).apply(UnaryOp::log1p) / x.constant(beta);
  return choose(greater(scaled, threshold), x, soft);
}

constexpr std::pair<std::string_view, Formula> kFormulas[] = {
    {"aten.relu.default", relu},
    {"aten.relu6.default", relu6},
    {"aten.sigmoid.default", sigmoid_formula},
    {"aten.silu.default", silu},
    {"aten.leaky_relu.default", leaky_relu},
    {"aten.elu.default", elu},
    {"aten.gelu.default", gelu},
    {"aten.hardtanh.default", hardtanh},
    {"aten.hardsigmoid.default", hardsigmoid},
    {"aten.hardswish.default", hardswish},
    {"aten.softplus.default", softplus},
};

Result<void> activate(LoweringContext& context, const Node& node) {
  const Call call(context, node);
  const ValueId id = TRY(call.result());
  const Value& result = context.value(id);
  const bool integers = is_integral(result.dtype) && node.op.starts_with("aten.relu");
  if (!is_floating(result.dtype) && !integers) {
    return call.unavailable("it is lowered for floating types only");
  }
  const DType dtype = compute_dtype(result.dtype);
  const Term x{TRY(call.operand(0, "self", dtype, result.shape))};
  for (const auto& [name, formula] : kFormulas) {
    if (name == node.op) context.map(id, TRY(formula(call, x)).expr);
  }
  return {};
}

std::vector<std::pair<std::string_view, LoweringRule>> rules() {
  std::vector<std::pair<std::string_view, LoweringRule>> all;
  for (const auto& [name, formula] : kFormulas) all.emplace_back(name, activate);
  return all;
}

}  // namespace

extern const LoweringFamily lowering_activation;
const LoweringFamily lowering_activation{"activation", rules()};

}  // namespace ke::ir
