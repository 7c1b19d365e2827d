// SPDX-License-Identifier: Apache-2.0
//
// Tensors made from nothing (full, arange) and copies that change at most the dtype. None needs a
// stage unless a value is converted: constants and index arithmetic live in their consumers.
#include <cmath>

#include "ir/lower/call.hpp"

namespace ke::ir {
namespace {

// full(size, fill), full_like(self, fill), fill(self, fill), scalar_tensor(fill), zeros, ones: the
// exporter has resolved size and dtype into the declared result.
Result<void> fill_at(LoweringContext& context, const Node& node, size_t position,
                     std::string_view name) {
  const Call call(context, node);
  const ValueId id = TRY(call.result());
  const Value& result = context.value(id);
  const ExprPtr value = TRY(call.operand(position, name, result.dtype, result.shape));
  if (value->kind == Expr::Kind::constant) {
    context.place(id, {value, {}});
  } else {
    context.map(id, value);
  }
  return {};
}

Result<void> full(LoweringContext& context, const Node& node) {
  return fill_at(context, node, 1, "fill_value");
}
Result<void> fill(LoweringContext& context, const Node& node) {
  return fill_at(context, node, 1, "value");
}
Result<void> scalar_tensor(LoweringContext& context, const Node& node) {
  return fill_at(context, node, 0, "s");
}

// Also empty tensors, whose contents may be anything.
Result<void> zeros_or_ones(LoweringContext& context, const Node& node) {
  const ValueId id = TRY(Call(context, node).result());
  const double value = node.op.starts_with("aten.ones") ? 1 : 0;
  context.place(id, {number(context.value(id).dtype, value), {}});
  return {};
}

// start + i * step. ATen computes integers in int64 and floating types in double, then converts.
Result<void> arange(LoweringContext& context, const Node& node) {
  const Call call(context, node);
  const ValueId id = TRY(call.result());
  const Value& result = context.value(id);
  if (result.shape.size() != 1) return call.wrong("its result is not one-dimensional");
  const bool short_form = node.op == "aten.arange.default";
  if (is_floating(result.dtype)) {
    const double start = short_form ? 0.0 : TRY(call.number(0, "start"));
    const double step = short_form ? 1.0 : TRY(call.number(2, "step", 1.0));
    const ExprPtr i = cast(DType::float64, axis(0));
    const ExprPtr offset = binary(BinaryOp::mul, i, constant(DType::float64, step));
    context.map(id, binary(BinaryOp::add, offset, constant(DType::float64, start)));
    return {};
  }
  const int64_t start = short_form ? 0 : TRY(call.integer(0, "start"));
  const int64_t step = short_form ? 1 : TRY(call.integer(2, "step", 1));
  const ExprPtr offset = binary(BinaryOp::mul, axis(0), index_constant(step));
  const ExprPtr position = binary(BinaryOp::add, offset, index_constant(start));
  context.place(id, {cast(result.dtype, position), {}});
  return {};
}

// The same elements in the result's dtype.
Result<void> convert_elements(LoweringContext& context, const Node& node) {
  const Call call(context, node);
  const ValueId id = TRY(call.result());
  const ValueId self = TRY(call.value(0, "self"));
  const Value& result = context.value(id);
  if (context.value(self).shape != result.shape) return call.wrong("it changes the shape");
  const ExprPtr element = context.read(self, axes(result.shape.size()));
  if (element->dtype == result.dtype) {
    context.place(id, {element, context.whole(self)});
  } else {
    context.map(id, cast(result.dtype, element));
  }
  return {};
}

// copy(self, src): src broadcast to self's shape and dtype.
Result<void> copy(LoweringContext& context, const Node& node) {
  const Call call(context, node);
  const ValueId id = TRY(call.result());
  const Value& result = context.value(id);
  const ExprPtr source = TRY(call.operand(1, "src", result.dtype, result.shape));
  context.map(id, source);
  return {};
}

}  // namespace

extern const LoweringFamily lowering_creation;
const LoweringFamily lowering_creation{"creation",
                                       {{"aten.full.default", full},
                                        {"aten.full_like.default", full},
                                        {"aten.fill.Scalar", fill},
                                        {"aten.fill.Tensor", fill},
                                        {"aten.scalar_tensor.default", scalar_tensor},
                                        {"aten.zeros.default", zeros_or_ones},
                                        {"aten.zeros_like.default", zeros_or_ones},
                                        {"aten.ones.default", zeros_or_ones},
                                        {"aten.empty.memory_format", zeros_or_ones},
                                        {"aten.empty_permuted.default", zeros_or_ones},
                                        {"aten.ones_like.default", zeros_or_ones},
                                        {"aten.arange.default", arange},
                                        {"aten.arange.start", arange},
                                        {"aten.arange.start_step", arange},
                                        {"aten._to_copy.default", convert_elements},
                                        {"aten.clone.default", convert_elements},
                                        {"aten.alias.default", convert_elements},
                                        {"aten.detach.default", convert_elements},
                                        {"aten.lift_fresh_copy.default", convert_elements},
                                        {"aten.copy.default", copy}}};

}  // namespace ke::ir
