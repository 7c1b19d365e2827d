// SPDX-License-Identifier: Apache-2.0
//
// Matrix products: a sum over k of a product of two loads, which is the form that the contract
// skeleton recognises. Half types accumulate in float32, and what is added to the product (addmm)
// is added before rounding.
#include "ir/lower/call.hpp"

namespace ke::ir {
namespace {

struct Product {
  TensorId tensor;  // [batch...,] m, n in the accumulator's dtype (integers: in their own)
  DType dtype;
};

// The product of a[b?, m, k] and b[b?, k, n] as a reduce stage.
Result<Product> multiply(LoweringContext& context, const Call& call, ValueId left, ValueId right,
                         const std::string& name, DType dtype) {
  const Value& a = context.value(left);
  const Value& b = context.value(right);
  const size_t rank = a.shape.size();
  const bool fits = (rank == 2 || rank == 3) && b.shape.size() == rank && a.dtype == b.dtype &&
                    a.shape[rank - 1] == b.shape[rank - 2] &&
                    (rank == 2 || a.shape[0] == b.shape[0]);
  if (!fits) return call.wrong("its operands do not multiply");
  if (a.dtype == DType::boolean) return call.unavailable("it is not lowered for boolean");
  const DType accumulator = compute_dtype(a.dtype);
  std::vector<Axis> parallel = {{"m", a.shape[rank - 2]}, {"n", b.shape[rank - 1]}};
  if (rank == 3) parallel.insert(parallel.begin(), {"b", a.shape[0]});
  Indices left_at = axes(rank), right_at = axes(rank);
  left_at[rank - 1] = axis(static_cast<int>(rank));   // k
  right_at[rank - 2] = axis(static_cast<int>(rank));  // k
  const ExprPtr body = binary(BinaryOp::mul, cast(accumulator, context.read(left, left_at)),
                              cast(accumulator, context.read(right, right_at)));
  const TensorId tensor = context.add_stage({.name = name,
                                             .dtype = dtype,
                                             .parallel = parallel,
                                             .reduction = {{"k", a.shape[rank - 1]}},
                                             .reduce = ReduceOp::sum,
                                             .accumulator = accumulator,
                                             .body = body});
  return Product{tensor, dtype};
}

Result<void> require_shape(const LoweringContext& context, const Call& call, TensorId product,
                           ValueId result) {
  if (context.shape_of(product) == context.value(result).shape) return {};
  return call.wrong("its declared shape is wrong");
}

// mm, bmm
Result<void> product(LoweringContext& context, const Node& node) {
  const Call call(context, node);
  const ValueId id = TRY(call.result());
  const Value& result = context.value(id);
  const ValueId left = TRY(call.value(0, "self")), right = TRY(call.value(1, "mat2"));
  const Product made = TRY(multiply(context, call, left, right, result.name, result.dtype));
  TRY(require_shape(context, call, made.tensor, id));
  context.place(id, {context.load_at(made.tensor, axes(result.shape.size())), made.tensor});
  return {};
}

// addmm, baddbmm: beta * self + alpha * (a @ b). beta = 0 ignores self, NaN included.
Result<void> scaled_product(LoweringContext& context, const Node& node) {
  const Call call(context, node);
  const ValueId id = TRY(call.result());
  const Value& result = context.value(id);
  const DType dtype = compute_dtype(result.dtype);
  const ValueId left = TRY(call.value(1, "mat1")), right = TRY(call.value(2, "mat2"));
  const Product made = TRY(multiply(context, call, left, right, result.name + "_product", dtype));
  TRY(require_shape(context, call, made.tensor, id));
  ExprPtr body = context.load_at(made.tensor, axes(result.shape.size()));
  const double beta = TRY(call.number(3, "beta", 1.0)), alpha = TRY(call.number(4, "alpha", 1.0));
  if (alpha != 1) body = binary(BinaryOp::mul, body, number(dtype, alpha));
  if (beta != 0) {
    ExprPtr added = TRY(call.operand(0, "self", dtype, result.shape));
    if (beta != 1) added = binary(BinaryOp::mul, added, number(dtype, beta));
    body = binary(BinaryOp::add, body, added);
  }
  context.map(id, body);
  return {};
}

// mv: a[m, k] @ v[k]; dot: u[k] @ v[k].
Result<void> vector_product(LoweringContext& context, const Node& node) {
  const Call call(context, node);
  const ValueId id = TRY(call.result());
  const Value& result = context.value(id);
  const ValueId left = TRY(call.value(0, "self"));
  const ValueId right = TRY(call.value(1, node.op == "aten.mv.default" ? "vec" : "tensor"));
  const Shape& a = context.value(left).shape;
  const Shape& b = context.value(right).shape;
  const size_t rows = result.shape.size();
  if (b.size() != 1 || a.size() != rows + 1 || rows > 1 || a.back() != b[0] ||
      (rows == 1 && a[0] != result.shape[0]) || result.dtype == DType::boolean) {
    return call.wrong("its operands do not multiply");
  }
  const DType accumulator = compute_dtype(result.dtype);
  std::vector<Axis> parallel;
  if (rows == 1) parallel.push_back({"m", a[0]});
  const ExprPtr k = axis(static_cast<int>(rows));
  const ExprPtr x = cast(accumulator, context.read(left, axes(rows + 1)));
  const ExprPtr y = cast(accumulator, context.read(right, {k}));
  const TensorId tensor = context.add_stage({.name = result.name,
                                             .dtype = result.dtype,
                                             .parallel = parallel,
                                             .reduction = {{"k", b[0]}},
                                             .reduce = ReduceOp::sum,
                                             .accumulator = accumulator,
                                             .body = binary(BinaryOp::mul, x, y)});
  context.place(id, {context.load_at(tensor, axes(rows)), tensor});
  return {};
}

}  // namespace

extern const LoweringFamily lowering_contraction;
const LoweringFamily lowering_contraction{"contraction",
                                          {{"aten.mm.default", product},
                                           {"aten.bmm.default", product},
                                           {"aten.addmm.default", scaled_product},
                                           {"aten.baddbmm.default", scaled_product},
                                           {"aten.mv.default", vector_product},
                                           {"aten.dot.default", vector_product}}};

}  // namespace ke::ir
