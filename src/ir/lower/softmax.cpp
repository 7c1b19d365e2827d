// SPDX-License-Identifier: Apache-2.0
//
// Softmax and log-softmax in their stable form: subtract the row's maximum, then exponentiate.
#include "ir/lower/reduce.hpp"

namespace ke::ir {
namespace {

// _softmax(self, dim, half_to_float), _log_softmax likewise.
Result<void> softmax(LoweringContext& context, const Node& node) {
  const Call call(context, node);
  const ValueId id = TRY(call.result()), self = TRY(call.value(0, "self"));
  const Value& result = context.value(id);
  const Shape& shape = context.value(self).shape;
  if (result.shape != shape) return call.wrong("it changes the shape");
  if (!is_floating(result.dtype)) return call.unavailable("it is lowered for floating types only");
  const int64_t dim = TRY(wrap_dimension(TRY(call.integer(1, "dim")), shape.size(), node.op));
  const Rows rows = rows_of(shape, shape.empty() ? std::vector<int64_t>{} : std::vector{dim});
  const DType dtype = compute_dtype(result.dtype);
  if (rows.count == 0) {  // nothing to compute, and nothing has no maximum
    context.place(id, {number(result.dtype, 0), {}});
    return {};
  }

  const ExprPtr in_row = cast(dtype, context.read(self, rows.indices));
  const Indices row = axes(rows.parallel.size()), element_row = rows.row_of_element();
  const TensorId top =
      reduce(context, rows, ReduceOp::maximum, result.name + "_max", dtype, in_row);
  const ExprPtr power =
      unary(UnaryOp::exp, binary(BinaryOp::sub, in_row, context.load_at(top, row)));
  const TensorId total = reduce(context, rows, ReduceOp::sum, result.name + "_sum", dtype, power);

  const ExprPtr x = cast(dtype, context.read(self, axes(shape.size())));
  const ExprPtr shifted = binary(BinaryOp::sub, x, context.load_at(top, element_row));
  if (node.op == "aten._softmax.default") {
    context.map(id, binary(BinaryOp::div, unary(UnaryOp::exp, shifted),
                           context.load_at(total, element_row)));
    return {};
  }
  const TensorId log_total = row_map(context, rows, result.name + "_log_sum", dtype,
                                     unary(UnaryOp::log, context.load_at(total, row)));
  context.map(id, binary(BinaryOp::sub, shifted, context.load_at(log_total, element_row)));
  return {};
}

}  // namespace

extern const LoweringFamily lowering_softmax;
const LoweringFamily lowering_softmax{
    "softmax", {{"aten._softmax.default", softmax}, {"aten._log_softmax.default", softmax}}};

}  // namespace ke::ir
