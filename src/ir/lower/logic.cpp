// SPDX-License-Identifier: Apache-2.0
//
// Comparisons, logic, selection and clamping. Comparisons promote their operands among themselves;
// the result is boolean.
#include "ir/lower/call.hpp"

namespace ke::ir {
namespace {

constexpr std::pair<std::string_view, BinaryOp> kComparisons[] = {
    {"aten.eq.", BinaryOp::eq}, {"aten.ne.", BinaryOp::ne}, {"aten.lt.", BinaryOp::lt},
    {"aten.le.", BinaryOp::le}, {"aten.gt.", BinaryOp::gt}, {"aten.ge.", BinaryOp::ge}};

Result<void> compare(LoweringContext& context, const Node& node) {
  const Call call(context, node);
  const ValueId id = TRY(call.result());
  const Shape& shape = context.value(id).shape;
  const DType dtype =
      compute_dtype(TRY(result_type(context, {call.arg(0, "self"), call.arg(1, "other")})));
  const ExprPtr a = TRY(call.operand(0, "self", dtype, shape));
  const ExprPtr b = TRY(call.operand(1, "other", dtype, shape));
  for (const auto& [prefix, op] : kComparisons) {
    if (node.op.starts_with(prefix)) context.map(id, binary(op, a, b));
  }
  return {};
}

Result<void> logical(LoweringContext& context, const Node& node) {
  const Call call(context, node);
  const ValueId id = TRY(call.result());
  const Shape& shape = context.value(id).shape;
  const ExprPtr a = TRY(call.operand(0, "self", DType::boolean, shape));
  if (node.op == "aten.logical_not.default") {
    context.map(id, unary(UnaryOp::logical_not, a));
    return {};
  }
  const ExprPtr b = TRY(call.operand(1, "other", DType::boolean, shape));
  const BinaryOp op = node.op == "aten.logical_and.default"  ? BinaryOp::logical_and
                      : node.op == "aten.logical_or.default" ? BinaryOp::logical_or
                                                             : BinaryOp::logical_xor;
  context.map(id, binary(op, a, b));
  return {};
}

Result<void> bitwise_not(LoweringContext& context, const Node& node) {
  const Call call(context, node);
  const ValueId id = TRY(call.result());
  const Value& result = context.value(id);
  if (is_floating(result.dtype)) return call.wrong("it is not defined for floating types");
  const ExprPtr x = TRY(call.operand(0, "self", result.dtype, result.shape));
  const bool boolean = result.dtype == DType::boolean;
  context.map(id, unary(boolean ? UnaryOp::logical_not : UnaryOp::bit_not, x));
  return {};
}

// isnan and isinf; an integer is neither.
Result<void> classify(LoweringContext& context, const Node& node) {
  const Call call(context, node);
  const ValueId id = TRY(call.result());
  const ValueId self = TRY(call.value(0, "self"));
  const ExprPtr x = TRY(context.read_broadcast(self, context.value(id).shape));
  if (!is_floating(x->dtype)) {
    context.place(id, {constant_int(DType::boolean, 0), {}});
    return {};
  }
  const UnaryOp op = node.op == "aten.isnan.default" ? UnaryOp::is_nan : UnaryOp::is_inf;
  context.map(id, unary(op, cast(compute_dtype(x->dtype), x)));
  return {};
}

Result<void> where(LoweringContext& context, const Node& node) {
  const Call call(context, node);
  const ValueId id = TRY(call.result());
  const Value& result = context.value(id);
  const ExprPtr condition = TRY(call.operand(0, "condition", DType::boolean, result.shape));
  const ExprPtr then_value = TRY(call.operand(1, "self", result.dtype, result.shape));
  const ExprPtr else_value = TRY(call.operand(2, "other", result.dtype, result.shape));
  context.map(id, select(condition, then_value, else_value));
  return {};
}

// min(max(self, low), high), in the result's dtype; NaN anywhere stays NaN.
Result<void> clamp(LoweringContext& context, const Node& node) {
  const Call call(context, node);
  const ValueId id = TRY(call.result());
  const Value& result = context.value(id);
  const DType dtype = compute_dtype(result.dtype);
  const bool only_max = node.op.starts_with("aten.clamp_max");
  const bool only_min = node.op.starts_with("aten.clamp_min");
  ExprPtr body = TRY(call.operand(0, "self", dtype, result.shape));
  if (!only_max && call.has(1, "min")) {
    body = binary(BinaryOp::maximum, body, TRY(call.operand(1, "min", dtype, result.shape)));
  }
  const size_t high = only_max ? 1 : 2;
  if (!only_min && call.has(high, "max")) {
    body = binary(BinaryOp::minimum, body, TRY(call.operand(high, "max", dtype, result.shape)));
  }
  context.map(id, body);
  return {};
}

}  // namespace

extern const LoweringFamily lowering_logic;
const LoweringFamily lowering_logic{"logic",
                                    {{"aten.eq.Tensor", compare},
                                     {"aten.eq.Scalar", compare},
                                     {"aten.ne.Tensor", compare},
                                     {"aten.ne.Scalar", compare},
                                     {"aten.lt.Tensor", compare},
                                     {"aten.lt.Scalar", compare},
                                     {"aten.le.Tensor", compare},
                                     {"aten.le.Scalar", compare},
                                     {"aten.gt.Tensor", compare},
                                     {"aten.gt.Scalar", compare},
                                     {"aten.ge.Tensor", compare},
                                     {"aten.ge.Scalar", compare},
                                     {"aten.logical_and.default", logical},
                                     {"aten.logical_or.default", logical},
                                     {"aten.logical_xor.default", logical},
                                     {"aten.logical_not.default", logical},
                                     {"aten.bitwise_not.default", bitwise_not},
                                     {"aten.isnan.default", classify},
                                     {"aten.isinf.default", classify},
                                     {"aten.where.self", where},
                                     {"aten.clamp.default", clamp},
                                     {"aten.clamp.Tensor", clamp},
                                     {"aten.clamp_min.default", clamp},
                                     {"aten.clamp_min.Tensor", clamp},
                                     {"aten.clamp_max.default", clamp},
                                     {"aten.clamp_max.Tensor", clamp}}};

}  // namespace ke::ir
