// SPDX-License-Identifier: Apache-2.0
//
// Operations that join or surround tensors: concatenation and padding. Each is one map stage whose
// body chooses lazily between its operands, so that no load leaves its tensor.
#include "ir/lower/call.hpp"

namespace ke::ir {
namespace {

constexpr size_t kPartsMax = 256;  // nested selects; also bounds every later walk of the body

struct Part {
  ValueId id;
  int64_t start = 0, extent = 0;
};

// The operands of cat with where each starts; empty one-dimensional ones are skipped, as ATen does.
Result<std::vector<Part>> parts_of(const LoweringContext& context, const Call& call,
                                   const std::vector<ValueId>& ids, size_t dim,
                                   const Shape& result) {
  std::vector<Part> parts;
  int64_t start = 0;
  for (const ValueId id : ids) {
    const Shape& shape = context.value(id).shape;
    if (shape == Shape{0}) continue;
    Shape expected = result;
    if (dim < shape.size() && dim < expected.size()) expected[dim] = shape[dim];
    if (shape != expected) return call.wrong("its operands' shapes do not fit");
    if (shape[dim] > 0) parts.push_back({id, start, shape[dim]});
    start += shape[dim];
  }
  if (start != result[dim] || parts.size() > kPartsMax) {
    return call.wrong("its operands do not add up to the result");
  }
  return parts;
}

Result<void> cat(LoweringContext& context, const Node& node) {
  const Call call(context, node);
  const ValueId id = TRY(call.result());
  const Value& result = context.value(id);
  if (result.shape.empty()) return call.wrong("its result has no dimensions");
  const auto dim = static_cast<size_t>(
      TRY(wrap_dimension(TRY(call.integer(1, "dim", 0)), result.shape.size(), node.op)));
  const std::vector<ValueId> ids = TRY(call.values(0, "tensors"));
  const std::vector<Part> parts = TRY(parts_of(context, call, ids, dim, result.shape));
  ExprPtr body;
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
    Indices at = axes(result.shape.size());
    const ExprPtr ends = index_constant(part->start + part->extent);
    const ExprPtr inside = binary(BinaryOp::lt, at[dim], ends);
    at[dim] = binary(BinaryOp::sub, at[dim], index_constant(part->start));
    const ExprPtr element = cast(result.dtype, context.read(part->id, at));
    body = body ? select(inside, element, body) : element;
  }
  context.map(id, body ? body : number(result.dtype, 0));
  return {};
}

// constant_pad_nd(self, pad, value): pad lists (before, after) from the last dimension; negative
// amounts cut.
Result<void> pad(LoweringContext& context, const Node& node) {
  const Call call(context, node);
  const ValueId id = TRY(call.result()), self = TRY(call.value(0, "self"));
  const Value& result = context.value(id);
  const Shape& from = context.value(self).shape;
  const std::vector<int64_t> amounts = TRY(call.integers(1, "pad"));
  const size_t rank = from.size();
  if (amounts.size() % 2 != 0 || amounts.size() > 2 * rank || result.shape.size() != rank) {
    return call.wrong("its amounts do not fit");
  }
  Indices at = axes(rank);
  ExprPtr inside = constant_int(DType::boolean, 1);
  for (size_t i = 0; 2 * i < amounts.size(); ++i) {
    const size_t d = rank - 1 - i;
    if (result.shape[d] != from[d] + amounts[2 * i] + amounts[2 * i + 1]) {
      return call.wrong("its amounts do not fit");
    }
    at[d] = binary(BinaryOp::sub, at[d], index_constant(amounts[2 * i]));
    inside = binary(BinaryOp::logical_and, inside, binary(BinaryOp::ge, at[d], index_constant(0)));
    inside =
        binary(BinaryOp::logical_and, inside, binary(BinaryOp::lt, at[d], index_constant(from[d])));
  }
  for (size_t d = 0; d + amounts.size() / 2 < rank; ++d) {
    if (result.shape[d] != from[d]) return call.wrong("its amounts do not fit");
  }
  ExprPtr value = number(result.dtype, 0);
  if (call.has(2, "value")) value = TRY(call.scalar(2, "value", result.dtype));
  if (context.value(self).dtype != result.dtype) return call.wrong("it changes the dtype");
  context.map(id, select(inside, context.read(self, at), value));
  return {};
}

}  // namespace

extern const LoweringFamily lowering_concat;
const LoweringFamily lowering_concat{
    "concat", {{"aten.cat.default", cat}, {"aten.constant_pad_nd.default", pad}}};

}  // namespace ke::ir
