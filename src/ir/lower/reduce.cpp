// SPDX-License-Identifier: Apache-2.0
//
// Reductions by rows.
#include "ir/lower/reduce.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace ke::ir {

Indices Rows::row_of_element() const {
  Indices result;
  for (const size_t dim : kept) result.push_back(axis(static_cast<int>(dim)));
  return result;
}

Rows rows_of(const Shape& shape, const std::vector<int64_t>& dims) {
  Rows rows;
  const size_t parallel_count = shape.size() - dims.size();
  for (size_t d = 0; d < shape.size(); ++d) {
    const bool reduced = std::binary_search(dims.begin(), dims.end(), static_cast<int64_t>(d));
    if (reduced) {
      rows.indices.push_back(axis(static_cast<int>(parallel_count + rows.reduction.size())));
      rows.reduction.push_back({fmt::format("r{}", rows.reduction.size()), shape[d]});
      rows.count *= shape[d];
    } else {
      rows.indices.push_back(axis(static_cast<int>(rows.parallel.size())));
      rows.parallel.push_back({fmt::format("i{}", rows.parallel.size()), shape[d]});
      rows.kept.push_back(d);
    }
  }
  // A tensor without dimensions still reduces, over one element a row.
  if (rows.reduction.empty()) rows.reduction.push_back({"r0", 1});
  return rows;
}

TensorId reduce(LoweringContext& context, const Rows& rows, ReduceOp op, const std::string& name,
                DType dtype, const ExprPtr& element) {
  return context.add_stage({.name = name,
                            .dtype = dtype,
                            .parallel = rows.parallel,
                            .reduction = rows.reduction,
                            .reduce = op,
                            .accumulator = element->dtype,
                            .body = element});
}

TensorId row_map(LoweringContext& context, const Rows& rows, const std::string& name, DType dtype,
                 const ExprPtr& body) {
  return context.add_stage({.name = name, .dtype = dtype, .parallel = rows.parallel, .body = body});
}

Result<void> place_rows(LoweringContext& context, const Call& call, ValueId result,
                        const Rows& rows, TensorId tensor) {
  const Shape& shape = context.value(result).shape;
  Shape plain;
  for (const Axis& axis : rows.parallel) plain.push_back(axis.extent);
  Shape kept(rows.indices.size(), 1);
  for (size_t i = 0; i < rows.kept.size(); ++i) kept[rows.kept[i]] = plain[i];
  if (context.load_at(tensor, {})->dtype != context.value(result).dtype) {
    return call.wrong("its result has an unexpected dtype");
  }
  if (shape == plain) {
    context.place(result, {context.load_at(tensor, axes(plain.size())), tensor});
  } else if (shape == kept) {
    context.place(result, {context.load_at(tensor, rows.row_of_element()), tensor});
  } else {
    return call.wrong("its declared shape is wrong");
  }
  return {};
}

Result<void> place_row_map(LoweringContext& context, const Call& call, ValueId result,
                           const Rows& rows, const ExprPtr& body) {
  const Value& declared = context.value(result);
  const TensorId tensor = row_map(context, rows, declared.name, declared.dtype, body);
  return place_rows(context, call, result, rows, tensor);
}

Moments mean_and_squares(LoweringContext& context, const Rows& rows, const std::string& name,
                         const ExprPtr& element) {
  const DType dtype = element->dtype;
  const Indices row = axes(rows.parallel.size());
  const TensorId total = reduce(context, rows, ReduceOp::sum, name + "_sum", dtype, element);
  const ExprPtr count = number(dtype, static_cast<double>(rows.count));
  const TensorId mean = row_map(context, rows, name + "_mean", dtype,
                                binary(BinaryOp::div, context.load_at(total, row), count));
  const ExprPtr distance = binary(BinaryOp::sub, element, context.load_at(mean, row));
  const TensorId squares = reduce(context, rows, ReduceOp::sum, name + "_squares", dtype,
                                  binary(BinaryOp::mul, distance, distance));
  return {mean, squares};
}

}  // namespace ke::ir
