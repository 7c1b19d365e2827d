// SPDX-License-Identifier: Apache-2.0
//
// Pointwise arithmetic: unary functions, add to pow, remainders and extremes. The result's dtype is
// the promoted one (the exporter computed it), so operands are cast to it first; half types compute
// in float32.
#include <array>

#include "ir/lower/call.hpp"

namespace ke::ir {
namespace {

struct UnaryRule {
  std::string_view name;
  UnaryOp op;
};

constexpr std::array kUnary = {
    UnaryRule{"aten.neg.default", UnaryOp::neg},
    UnaryRule{"aten.abs.default", UnaryOp::abs},
    UnaryRule{"aten.exp.default", UnaryOp::exp},
    UnaryRule{"aten.exp2.default", UnaryOp::exp2},
    UnaryRule{"aten.expm1.default", UnaryOp::expm1},
    UnaryRule{"aten.log.default", UnaryOp::log},
    UnaryRule{"aten.log2.default", UnaryOp::log2},
    UnaryRule{"aten.log10.default", UnaryOp::log10},
    UnaryRule{"aten.log1p.default", UnaryOp::log1p},
    UnaryRule{"aten.sqrt.default", UnaryOp::sqrt},
    UnaryRule{"aten.rsqrt.default", UnaryOp::rsqrt},
    UnaryRule{"aten.sin.default", UnaryOp::sin},
    UnaryRule{"aten.cos.default", UnaryOp::cos},
    UnaryRule{"aten.tan.default", UnaryOp::tan},
    UnaryRule{"aten.asin.default", UnaryOp::asin},
    UnaryRule{"aten.acos.default", UnaryOp::acos},
    UnaryRule{"aten.atan.default", UnaryOp::atan},
    UnaryRule{"aten.sinh.default", UnaryOp::sinh},
    UnaryRule{"aten.cosh.default", UnaryOp::cosh},
    UnaryRule{"aten.tanh.default", UnaryOp::tanh},
    UnaryRule{"aten.asinh.default", UnaryOp::asinh},
    UnaryRule{"aten.acosh.default", UnaryOp::acosh},
    UnaryRule{"aten.atanh.default", UnaryOp::atanh},
    UnaryRule{"aten.erf.default", UnaryOp::erf},
    UnaryRule{"aten.floor.default", UnaryOp::floor},
    UnaryRule{"aten.ceil.default", UnaryOp::ceil},
    UnaryRule{"aten.trunc.default", UnaryOp::trunc},
    UnaryRule{"aten.round.default", UnaryOp::round},
    UnaryRule{"aten.sign.default", UnaryOp::sign},
};

struct BinaryRule {
  std::string_view name;
  BinaryOp op;
};

// Operations that are one BinaryOp over operands of the result's dtype.
constexpr std::array kBinary = {
    BinaryRule{"aten.remainder.Tensor", BinaryOp::mod},
    BinaryRule{"aten.remainder.Scalar", BinaryOp::mod},
    BinaryRule{"aten.remainder.Scalar_Tensor", BinaryOp::mod},
    BinaryRule{"aten.fmod.Tensor", BinaryOp::fmod},
    BinaryRule{"aten.fmod.Scalar", BinaryOp::fmod},
    BinaryRule{"aten.maximum.default", BinaryOp::maximum},
    BinaryRule{"aten.minimum.default", BinaryOp::minimum},
    BinaryRule{"aten.atan2.default", BinaryOp::atan2},
    BinaryRule{"aten.copysign.Tensor", BinaryOp::copysign},
    BinaryRule{"aten.copysign.Scalar", BinaryOp::copysign},
    BinaryRule{"aten.bitwise_left_shift.Tensor", BinaryOp::shift_left},
    BinaryRule{"aten.bitwise_left_shift.Tensor_Scalar", BinaryOp::shift_left},
    BinaryRule{"aten.bitwise_right_shift.Tensor", BinaryOp::shift_right},
    BinaryRule{"aten.bitwise_right_shift.Tensor_Scalar", BinaryOp::shift_right},
    BinaryRule{"aten.__lshift__.Tensor", BinaryOp::shift_left},
    BinaryRule{"aten.__lshift__.Scalar", BinaryOp::shift_left},
    BinaryRule{"aten.__rshift__.Tensor", BinaryOp::shift_right},
    BinaryRule{"aten.__rshift__.Scalar", BinaryOp::shift_right},
    BinaryRule{"aten.bitwise_and.Tensor", BinaryOp::bit_and},
    BinaryRule{"aten.bitwise_and.Scalar", BinaryOp::bit_and},
    BinaryRule{"aten.bitwise_or.Tensor", BinaryOp::bit_or},
    BinaryRule{"aten.bitwise_or.Scalar", BinaryOp::bit_or},
    BinaryRule{"aten.bitwise_xor.Tensor", BinaryOp::bit_xor},
    BinaryRule{"aten.bitwise_xor.Scalar", BinaryOp::bit_xor},
};

template <class Table>
auto op_of(const Table& table, std::string_view name) {
  for (const auto& row : table) {
    if (row.name == name) return row.op;
  }
  return table.front().op;  // not reached: rules are registered from the same table
}

// What every pointwise rule starts from: the result, its shape and the dtype to compute in.
struct Target {
  ValueId id;
  const Shape& shape;
  DType dtype;
};

Result<Target> target_of(LoweringContext& context, const Call& call) {
  const ValueId id = TRY(call.result());
  const Value& value = context.value(id);
  return Target{id, value.shape, compute_dtype(value.dtype)};
}

Result<void> apply_unary(LoweringContext& context, const Node& node) {
  const Call call(context, node);
  const Target target = TRY(target_of(context, call));
  const UnaryOp op = op_of(kUnary, node.op);
  const bool rounds = op >= UnaryOp::floor && op <= UnaryOp::round;
  const ExprPtr x = TRY(call.operand(0, "self", target.dtype, target.shape));
  if (target.dtype == DType::boolean) {
    if (op != UnaryOp::sign) return call.unavailable("it is not defined for boolean");
    context.map(target.id, x);
    return {};
  }
  if (!is_floating(target.dtype) &&
      (op == UnaryOp::neg || op == UnaryOp::abs || op == UnaryOp::sign || rounds)) {
    context.map(target.id, rounds ? x : unary(op, x));
    return {};
  }
  if (!is_floating(target.dtype)) return call.wrong("its result is not a floating type");
  context.map(target.id, unary(op, x));
  return {};
}

Result<void> apply_binary(LoweringContext& context, const Node& node) {
  const Call call(context, node);
  const Target target = TRY(target_of(context, call));
  const BinaryOp op = op_of(kBinary, node.op);
  const ExprPtr a = TRY(call.operand(0, "self", target.dtype, target.shape));
  const ExprPtr b = TRY(call.operand(1, "other", target.dtype, target.shape));
  const bool bits = op >= BinaryOp::bit_and;
  const bool shifts = op >= BinaryOp::shift_left;
  const bool extreme = op == BinaryOp::maximum || op == BinaryOp::minimum;
  if ((bits && is_floating(target.dtype)) || (shifts && target.dtype == DType::boolean) ||
      (!bits && !extreme && target.dtype == DType::boolean)) {
    return call.wrong("it is not defined for this dtype");
  }
  context.map(target.id, binary(op, a, b));
  return {};
}

// self + alpha * other; for booleans + is "or".
Result<void> apply_add(LoweringContext& context, const Node& node) {
  const Call call(context, node);
  const Target target = TRY(target_of(context, call));
  const ExprPtr a = TRY(call.operand(0, "self", target.dtype, target.shape));
  ExprPtr b = TRY(call.operand(1, "other", target.dtype, target.shape));
  if (call.has(2, "alpha")) {
    const ExprPtr alpha = TRY(call.scalar(2, "alpha", target.dtype));
    b = target.dtype == DType::boolean ? binary(BinaryOp::logical_and, b, alpha)
                                       : binary(BinaryOp::mul, b, alpha);
  }
  const BinaryOp op = target.dtype == DType::boolean ? BinaryOp::logical_or : BinaryOp::add;
  context.map(target.id, binary(op, a, b));
  return {};
}

Result<void> apply_sub(LoweringContext& context, const Node& node) {
  const Call call(context, node);
  const Target target = TRY(target_of(context, call));
  if (target.dtype == DType::boolean) return call.wrong("booleans do not subtract");
  ExprPtr a = TRY(call.operand(0, "self", target.dtype, target.shape));
  ExprPtr b = TRY(call.operand(1, "other", target.dtype, target.shape));
  if (node.op.starts_with("aten.rsub")) std::swap(a, b);
  if (call.has(2, "alpha")) {
    b = binary(BinaryOp::mul, b, TRY(call.scalar(2, "alpha", target.dtype)));
  }
  context.map(target.id, binary(BinaryOp::sub, a, b));
  return {};
}

Result<void> apply_mul(LoweringContext& context, const Node& node) {
  const Call call(context, node);
  const Target target = TRY(target_of(context, call));
  const ExprPtr a = TRY(call.operand(0, "self", target.dtype, target.shape));
  const ExprPtr b = TRY(call.operand(1, "other", target.dtype, target.shape));
  const BinaryOp op = target.dtype == DType::boolean ? BinaryOp::logical_and : BinaryOp::mul;
  context.map(target.id, binary(op, a, b));
  return {};
}

// Without a rounding mode the exporter has made the result floating, also for integers.
Result<void> apply_div(LoweringContext& context, const Node& node) {
  const Call call(context, node);
  const Target target = TRY(target_of(context, call));
  const std::string mode = TRY(call.text(2, "rounding_mode", ""));
  if (target.dtype == DType::boolean || (mode.empty() && !is_floating(target.dtype))) {
    return call.wrong("its result is not a floating type");
  }
  const ExprPtr a = TRY(call.operand(0, "self", target.dtype, target.shape));
  const ExprPtr b = TRY(call.operand(1, "other", target.dtype, target.shape));
  if (mode == "floor") {
    context.map(target.id, binary(BinaryOp::floor_div, a, b));
  } else if (mode == "trunc" && is_floating(target.dtype)) {
    context.map(target.id, unary(UnaryOp::trunc, binary(BinaryOp::div, a, b)));
  } else if (mode == "trunc" || mode.empty()) {
    context.map(target.id, binary(BinaryOp::div, a, b));
  } else {
    return call.wrong("its rounding mode is unknown");
  }
  return {};
}

// The exponents that ATen's CPU kernel computes without pow(), and small integer ones; else null.
ExprPtr special_power(const ExprPtr& x, double exponent) {
  const ExprPtr one = number(x->dtype, 1);
  const bool floating = is_floating(x->dtype);
  if (exponent == 0) return one;
  if (exponent == 1) return x;
  if (exponent == 2) return binary(BinaryOp::mul, x, x);
  if (exponent == 3) return binary(BinaryOp::mul, binary(BinaryOp::mul, x, x), x);
  if (!floating) return nullptr;
  if (exponent == 0.5) return unary(UnaryOp::sqrt, x);
  if (exponent == -0.5) return binary(BinaryOp::div, one, unary(UnaryOp::sqrt, x));
  if (exponent == -1) return binary(BinaryOp::div, one, x);
  if (exponent == -2) return binary(BinaryOp::div, one, binary(BinaryOp::mul, x, x));
  return nullptr;
}

Result<void> apply_pow(LoweringContext& context, const Node& node) {
  const Call call(context, node);
  const Target target = TRY(target_of(context, call));
  if (target.dtype == DType::boolean) return call.unavailable("it is not defined for boolean");
  const ExprPtr base = TRY(call.operand(0, "self", target.dtype, target.shape));
  if (node.op == "aten.pow.Tensor_Scalar") {
    const double exponent = TRY(call.number(1, "exponent"));
    if (const ExprPtr body = special_power(base, exponent)) {
      context.map(target.id, body);
      return {};
    }
  }
  const ExprPtr exponent = TRY(call.operand(1, "exponent", target.dtype, target.shape));
  context.map(target.id, binary(BinaryOp::pow, base, exponent));
  return {};
}

// The larger or smaller operand; NaN only when both are.
Result<void> apply_fmax(LoweringContext& context, const Node& node) {
  const Call call(context, node);
  const Target target = TRY(target_of(context, call));
  const ExprPtr a = TRY(call.operand(0, "self", target.dtype, target.shape));
  const ExprPtr b = TRY(call.operand(1, "other", target.dtype, target.shape));
  const BinaryOp op = node.op == "aten.fmax.default" ? BinaryOp::maximum : BinaryOp::minimum;
  ExprPtr body = binary(op, a, b);
  if (is_floating(target.dtype)) {
    body = select(unary(UnaryOp::is_nan, a), b, select(unary(UnaryOp::is_nan, b), a, body));
  }
  context.map(target.id, body);
  return {};
}

Result<void> apply_reciprocal(LoweringContext& context, const Node& node) {
  const Call call(context, node);
  const Target target = TRY(target_of(context, call));
  if (!is_floating(target.dtype)) return call.wrong("its result is not a floating type");
  const ExprPtr x = TRY(call.operand(0, "self", target.dtype, target.shape));
  context.map(target.id, binary(BinaryOp::div, number(target.dtype, 1), x));
  return {};
}

// self + value * t1 op t2
Result<void> apply_addc(LoweringContext& context, const Node& node) {
  const Call call(context, node);
  const Target target = TRY(target_of(context, call));
  const BinaryOp op = node.op == "aten.addcmul.default" ? BinaryOp::mul : BinaryOp::div;
  if (target.dtype == DType::boolean) return call.unavailable("it is not defined for boolean");
  const ExprPtr self = TRY(call.operand(0, "self", target.dtype, target.shape));
  ExprPtr first = TRY(call.operand(1, "tensor1", target.dtype, target.shape));
  const ExprPtr second = TRY(call.operand(2, "tensor2", target.dtype, target.shape));
  if (call.has(3, "value")) {
    first = binary(BinaryOp::mul, TRY(call.scalar(3, "value", target.dtype)), first);
  }
  context.map(target.id, binary(BinaryOp::add, self, binary(op, first, second)));
  return {};
}

std::vector<std::pair<std::string_view, LoweringRule>> rules() {
  std::vector<std::pair<std::string_view, LoweringRule>> all = {
      {"aten.add.Tensor", apply_add},        {"aten.add.Scalar", apply_add},
      {"aten.sub.Tensor", apply_sub},        {"aten.sub.Scalar", apply_sub},
      {"aten.rsub.Tensor", apply_sub},       {"aten.rsub.Scalar", apply_sub},
      {"aten.mul.Tensor", apply_mul},        {"aten.mul.Scalar", apply_mul},
      {"aten.div.Tensor", apply_div},        {"aten.div.Scalar", apply_div},
      {"aten.div.Tensor_mode", apply_div},   {"aten.div.Scalar_mode", apply_div},
      {"aten.pow.Tensor_Scalar", apply_pow}, {"aten.pow.Tensor_Tensor", apply_pow},
      {"aten.pow.Scalar", apply_pow},        {"aten.fmax.default", apply_fmax},
      {"aten.fmin.default", apply_fmax},     {"aten.reciprocal.default", apply_reciprocal},
      {"aten.addcmul.default", apply_addc},  {"aten.addcdiv.default", apply_addc},
  };
  for (const UnaryRule& row : kUnary) all.emplace_back(row.name, apply_unary);
  for (const BinaryRule& row : kBinary) all.emplace_back(row.name, apply_binary);
  return all;
}

}  // namespace

extern const LoweringFamily lowering_arithmetic;
const LoweringFamily lowering_arithmetic{"arithmetic", rules()};

}  // namespace ke::ir
