// SPDX-License-Identifier: Apache-2.0
//
// Running sums and products along one dimension. What is flipped, shifted or masked before is
// index arithmetic and body of the scan; what is flipped back after is the place of its result.
#include "ir/lower/call.hpp"

namespace ke::ir {
namespace {

// cumsum(self, dim, *, dtype), cumprod likewise. Integral types accumulate as their result does.
Result<void> scan(LoweringContext& context, const Node& node) {
  const Call call(context, node);
  const ValueId id = TRY(call.result()), self = TRY(call.value(0, "self"));
  const Value& result = context.value(id);
  const Shape& shape = context.value(self).shape;
  if (result.shape != shape) return call.wrong("it changes the shape");
  const DType dtype = compute_dtype(result.dtype);
  if (dtype == DType::boolean) return call.unavailable("it is not lowered for boolean");
  const int64_t dim = TRY(wrap_dimension(TRY(call.integer(1, "dim")), shape.size(), node.op));
  const ExprPtr element =
      cast(dtype, cast(result.dtype, context.read(self, axes(shape.size()))));
  if (shape.empty() || shape[static_cast<size_t>(dim)] <= 1) {
    context.map(id, element);
    return {};
  }
  NewStage stage{.name = result.name, .dtype = result.dtype, .parallel = {}, .body = element};
  for (size_t d = 0; d < shape.size(); ++d) {
    stage.parallel.push_back({"i" + std::to_string(d), shape[d]});
  }
  stage.reduce = node.op == "aten.cumsum.default" ? ReduceOp::sum : ReduceOp::product;
  stage.scan = static_cast<int>(dim);
  stage.accumulator = dtype;
  const TensorId tensor = context.add_stage(std::move(stage));
  context.place(id, {context.load_at(tensor, axes(shape.size())), tensor});
  return {};
}

}  // namespace

extern const LoweringFamily lowering_scan;
const LoweringFamily lowering_scan{
    "scan", {{"aten.cumsum.default", scan}, {"aten.cumprod.default", scan}}};

}  // namespace ke::ir
