// SPDX-License-Identifier: Apache-2.0
//
// Reductions over dimensions: sums, extremes and their positions, products, any/all, variance,
// vector norms. A reduce stage never keeps the reduced dimensions; keepdim is index arithmetic of
// the result's place.
#include <cmath>

#include "ir/lower/reduce.hpp"

namespace ke::ir {
namespace {

struct Parts {
  ValueId id, self;
  Rows rows;
};

Result<Parts> parts_of(LoweringContext& context, const Call& call, const Node& node,
                       const std::vector<int64_t>& dims) {
  const ValueId id = TRY(call.result()), self = TRY(call.value(0, "self"));
  const Shape& shape = context.value(self).shape;
  return Parts{id, self, rows_of(shape, TRY(wrap_dimensions(dims, shape.size(), node.op)))};
}

// sum and mean: floating types accumulate in their compute type, everything else in int64.
Result<void> sum(LoweringContext& context, const Node& node) {
  const Call call(context, node);
  const std::vector<int64_t> dims =
      node.op.ends_with(".default") ? std::vector<int64_t>{} : TRY(call.integers(1, "dim"));
  const Parts parts = TRY(parts_of(context, call, node, dims));
  const Value& result = context.value(parts.id);
  const DType dtype = compute_dtype(result.dtype);
  const ExprPtr element = cast(dtype, context.read(parts.self, parts.rows.indices));
  const bool mean = node.op.starts_with("aten.mean");
  if (dtype == DType::boolean || (mean && !is_floating(dtype))) {
    return call.unavailable("it is not defined for this dtype");
  }
  if (!mean) {
    const TensorId total =
        reduce(context, parts.rows, ReduceOp::sum, result.name, result.dtype, element);
    return place_rows(context, call, parts.id, parts.rows, total);
  }
  const TensorId total =
      reduce(context, parts.rows, ReduceOp::sum, result.name + "_sum", dtype, element);
  const ExprPtr count = number(dtype, static_cast<double>(parts.rows.count));
  const ExprPtr average =
      binary(BinaryOp::div, context.load_at(total, axes(parts.rows.parallel.size())), count);
  return place_row_map(context, call, parts.id, parts.rows, average);
}

Result<void> product(LoweringContext& context, const Node& node) {
  const Call call(context, node);
  const std::vector<int64_t> dims =
      node.op.ends_with(".default") ? std::vector<int64_t>{} : TRY(call.integers(1, "dim"));
  const Parts parts = TRY(parts_of(context, call, node, dims));
  const Value& result = context.value(parts.id);
  if (result.dtype == DType::boolean) return call.unavailable("it is not lowered for boolean");
  const ExprPtr element =
      cast(compute_dtype(result.dtype), context.read(parts.self, parts.rows.indices));
  const TensorId total =
      reduce(context, parts.rows, ReduceOp::product, result.name, result.dtype, element);
  return place_rows(context, call, parts.id, parts.rows, total);
}

// amax, amin, max and min over everything; max.dim and min.dim with positions as second result.
Result<void> extreme(LoweringContext& context, const Node& node) {
  const Call call(context, node);
  const bool highest = node.op.starts_with("aten.amax") || node.op.starts_with("aten.max");
  const bool full = node.op == "aten.max.default" || node.op == "aten.min.default";
  const std::vector<int64_t> dims = full ? std::vector<int64_t>{} : TRY(call.integers(1, "dim"));
  const Parts parts = TRY(parts_of(context, call, node, dims));
  const Value& result = context.value(parts.id);
  const ExprPtr element = context.read(parts.self, parts.rows.indices);
  if (element->dtype != result.dtype) return call.wrong("it changes the dtype");
  const TensorId found =
      reduce(context, parts.rows, highest ? ReduceOp::maximum : ReduceOp::minimum, result.name,
             result.dtype, element);
  TRY(place_rows(context, call, parts.id, parts.rows, found));
  if (node.results.size() < 2) return {};
  const ValueId positions = node.results[1];
  const TensorId where = reduce(context, parts.rows, highest ? ReduceOp::argmax : ReduceOp::argmin,
                                context.value(positions).name, DType::int64, element);
  return place_rows(context, call, positions, parts.rows, where);
}

Result<void> position(LoweringContext& context, const Node& node) {
  const Call call(context, node);
  const Parts parts = TRY(parts_of(context, call, node, TRY(call.integers(1, "dim"))));
  const bool highest = node.op == "aten.argmax.default";
  const TensorId where = reduce(context, parts.rows, highest ? ReduceOp::argmax : ReduceOp::argmin,
                                context.value(parts.id).name, DType::int64,
                                context.read(parts.self, parts.rows.indices));
  return place_rows(context, call, parts.id, parts.rows, where);
}

// any and all yield boolean, except that ATen keeps uint8 for uint8 operands.
Result<void> quantify(LoweringContext& context, const Node& node) {
  const Call call(context, node);
  const std::vector<int64_t> dims =
      node.op.ends_with(".default") ? std::vector<int64_t>{} : TRY(call.integers(1, "dim"));
  const Parts parts = TRY(parts_of(context, call, node, dims));
  const Value& result = context.value(parts.id);
  const ExprPtr element = cast(DType::boolean, context.read(parts.self, parts.rows.indices));
  const ReduceOp op = node.op.starts_with("aten.any") ? ReduceOp::any : ReduceOp::all;
  const TensorId found = reduce(context, parts.rows, op, result.name, result.dtype, element);
  return place_rows(context, call, parts.id, parts.rows, found);
}

// Two passes: the mean, then the mean squared distance from it, over max(count - correction, 0).
Result<void> variance(LoweringContext& context, const Node& node) {
  const Call call(context, node);
  const Parts parts = TRY(parts_of(context, call, node, TRY(call.integers(1, "dim"))));
  const Value& result = context.value(parts.id);
  const DType dtype = compute_dtype(result.dtype);
  if (!is_floating(dtype)) return call.unavailable("it is lowered for floating types only");
  const double correction = TRY(call.number(Call::kKeyword, "correction", 1.0));
  const ExprPtr element = cast(dtype, context.read(parts.self, parts.rows.indices));
  const Moments moments = mean_and_squares(context, parts.rows, result.name, element);
  const double freedom = std::max(static_cast<double>(parts.rows.count) - correction, 0.0);
  const ExprPtr value =
      binary(BinaryOp::div, context.load_at(moments.squares, axes(parts.rows.parallel.size())),
             number(dtype, freedom));
  return place_row_map(context, call, parts.id, parts.rows, value);
}

// (sum |x|^p)^(1/p), with the limits p = 0 (count of nonzero), inf and -inf.
Result<void> vector_norm(LoweringContext& context, const Node& node) {
  const Call call(context, node);
  const double order = TRY(call.number(1, "ord", 2.0));
  const Parts parts = TRY(parts_of(context, call, node, TRY(call.integers(2, "dim"))));
  const Value& result = context.value(parts.id);
  const DType dtype = compute_dtype(result.dtype);
  if (!is_floating(dtype)) return call.unavailable("it is lowered for floating types only");
  const ExprPtr x = cast(dtype, context.read(parts.self, parts.rows.indices));
  ExprPtr term = unary(UnaryOp::abs, x);
  ReduceOp op = ReduceOp::sum;
  if (std::isinf(order)) {
    op = order > 0 ? ReduceOp::maximum : ReduceOp::minimum;
    if (op == ReduceOp::maximum && parts.rows.count == 0) op = ReduceOp::sum;  // empty: 0
  } else if (order == 0) {
    term = cast(dtype, binary(BinaryOp::ne, x, number(dtype, 0)));
  } else if (order == 2) {
    term = binary(BinaryOp::mul, x, x);
  } else if (order != 1) {
    term = binary(BinaryOp::pow, term, number(dtype, order));
  }
  const bool rooted = !std::isinf(order) && order != 0 && order != 1;
  const TensorId total = reduce(context, parts.rows, op, result.name + (rooted ? "_sum" : ""),
                                rooted ? dtype : result.dtype, term);
  if (!rooted) return place_rows(context, call, parts.id, parts.rows, total);
  const ExprPtr sum_of_powers = context.load_at(total, axes(parts.rows.parallel.size()));
  const ExprPtr root = order == 2 ? unary(UnaryOp::sqrt, sum_of_powers)
                                  : binary(BinaryOp::pow, sum_of_powers, number(dtype, 1 / order));
  return place_row_map(context, call, parts.id, parts.rows, root);
}

}  // namespace

extern const LoweringFamily lowering_reduction;
const LoweringFamily lowering_reduction{
    "reduction",
    {{"aten.sum.default", sum},         {"aten.sum.dim_IntList", sum},
     {"aten.mean.default", sum},        {"aten.mean.dim", sum},
     {"aten.prod.default", product},    {"aten.prod.dim_int", product},
     {"aten.amax.default", extreme},    {"aten.amin.default", extreme},
     {"aten.max.default", extreme},     {"aten.min.default", extreme},
     {"aten.max.dim", extreme},         {"aten.min.dim", extreme},
     {"aten.argmax.default", position}, {"aten.argmin.default", position},
     {"aten.any.default", quantify},    {"aten.any.dim", quantify},
     {"aten.any.dims", quantify},       {"aten.all.default", quantify},
     {"aten.all.dim", quantify},        {"aten.all.dims", quantify},
     {"aten.var.correction", variance}, {"aten.linalg_vector_norm.default", vector_norm}}};

}  // namespace ke::ir
