// SPDX-License-Identifier: Apache-2.0
//
// Loads at indices that are themselves loaded: embedding, index_select, gather, index. Indices are
// trusted to be in range, as in PyTorch they would raise otherwise; negative ones count from the
// end where PyTorch says so (index).
#include "ir/lower/call.hpp"

namespace ke::ir {
namespace {

Result<ExprPtr> index_at(const LoweringContext& context, const Call& call, ValueId id,
                         const Indices& indices) {
  if (!is_integral(context.value(id).dtype)) return call.wrong("its index is not integral");
  return cast(DType::int64, context.read(id, indices));
}

// embedding(weight, indices): rows of a table.
Result<void> embedding(LoweringContext& context, const Node& node) {
  const Call call(context, node);
  const ValueId id = TRY(call.result());
  const ValueId table = TRY(call.value(0, "weight")), index = TRY(call.value(1, "indices"));
  Shape expected = context.value(index).shape;
  const size_t rank = expected.size();
  if (context.value(table).shape.size() != 2) return call.wrong("its table is not a matrix");
  expected.push_back(context.value(table).shape[1]);
  if (context.value(id).shape != expected) return call.wrong("its declared shape is wrong");
  const ExprPtr row = TRY(index_at(context, call, index, axes(rank)));
  context.map(id, context.read(table, {row, axis(static_cast<int>(rank))}));
  return {};
}

Result<void> index_select(LoweringContext& context, const Node& node) {
  const Call call(context, node);
  const ValueId id = TRY(call.result());
  const ValueId self = TRY(call.value(0, "self")), index = TRY(call.value(2, "index"));
  const Shape& from = context.value(self).shape;
  const auto dim =
      static_cast<size_t>(TRY(wrap_dimension(TRY(call.integer(1, "dim")), from.size(), node.op)));
  Shape expected = from;
  if (context.value(index).shape.size() != 1 || dim >= from.size()) {
    return call.wrong("its index is not a vector");
  }
  expected[dim] = context.value(index).shape[0];
  if (context.value(id).shape != expected) return call.wrong("its declared shape is wrong");
  Indices at = axes(expected.size());
  at[dim] = TRY(index_at(context, call, index, {at[dim]}));
  context.map(id, context.read(self, at));
  return {};
}

Result<void> gather(LoweringContext& context, const Node& node) {
  const Call call(context, node);
  const ValueId id = TRY(call.result());
  const ValueId self = TRY(call.value(0, "self")), index = TRY(call.value(2, "index"));
  const Shape& from = context.value(self).shape;
  const Shape& shape = context.value(index).shape;
  const auto dim =
      static_cast<size_t>(TRY(wrap_dimension(TRY(call.integer(1, "dim")), from.size(), node.op)));
  bool fits = shape.size() == from.size() && dim < from.size() && context.value(id).shape == shape;
  for (size_t d = 0; fits && d < shape.size(); ++d) fits = d == dim || shape[d] <= from[d];
  if (!fits) return call.wrong("its index does not fit");
  Indices at = axes(shape.size());
  at[dim] = TRY(index_at(context, call, index, axes(shape.size())));
  context.map(id, context.read(self, at));
  return {};
}

// The index tensors of aten.index with the dimensions they stand for.
struct Indexed {
  std::vector<std::pair<size_t, ValueId>> tensors;
  size_t first = 0;  // where their broadcast dimensions go in the result
};

Result<Indexed> indexed_dimensions(const LoweringContext& context, const Call& call, size_t rank) {
  const auto* items = std::get_if<std::vector<Arg>>(&call.arg(1, "indices").data);
  if (!items || items->size() > rank) return call.wrong("its indices are not a list");
  Indexed indexed;
  for (size_t d = 0; d < items->size(); ++d) {
    if ((*items)[d].is_none()) continue;
    const auto* id = std::get_if<ValueId>(&(*items)[d].data);
    if (!id || !is_integral(context.value(*id).dtype)) {
      return call.unavailable("it is lowered for integer indices only");
    }
    indexed.tensors.emplace_back(d, *id);
  }
  if (indexed.tensors.empty()) return call.wrong("it has no index");
  const size_t first = indexed.tensors.front().first;
  const bool adjacent = indexed.tensors.back().first - first + 1 == indexed.tensors.size();
  indexed.first = adjacent ? first : 0;
  return indexed;
}

// index(self, [i0, None, i2]): advanced indexing with integer tensors.
Result<void> index(LoweringContext& context, const Node& node) {
  const Call call(context, node);
  const ValueId id = TRY(call.result()), self = TRY(call.value(0, "self"));
  const Shape& from = context.value(self).shape;
  const Shape& to = context.value(id).shape;
  const Indexed indexed = TRY(indexed_dimensions(context, call, from.size()));
  const size_t plain = from.size() - indexed.tensors.size();
  if (to.size() < plain) return call.wrong("its declared shape is wrong");
  const size_t broadcast_rank = to.size() - plain;
  Shape broadcast;
  Indices broadcast_at, at(from.size());
  for (size_t d = 0; d < broadcast_rank; ++d) {
    broadcast.push_back(to[indexed.first + d]);
    broadcast_at.push_back(axis(static_cast<int>(indexed.first + d)));
  }
  for (const auto& [dim, tensor] : indexed.tensors) {
    const ExprPtr given =
        cast(DType::int64, TRY(context.read_broadcast(tensor, broadcast, broadcast_at)));
    const ExprPtr negative = binary(BinaryOp::lt, given, index_constant(0));
    at[dim] = select(negative, binary(BinaryOp::add, given, index_constant(from[dim])), given);
  }
  size_t next = 0;
  for (size_t d = 0; d < from.size(); ++d) {
    if (at[d]) continue;
    if (next == indexed.first) next += broadcast_rank;
    if (next >= to.size() || to[next] != from[d]) return call.wrong("its declared shape is wrong");
    at[d] = axis(static_cast<int>(next++));
  }
  context.map(id, context.read(self, at));
  return {};
}

}  // namespace

extern const LoweringFamily lowering_gather;
const LoweringFamily lowering_gather{"gather",
                                     {{"aten.embedding.default", embedding},
                                      {"aten.index_select.default", index_select},
                                      {"aten.gather.default", gather},
                                      {"aten.index.Tensor", index}}};

}  // namespace ke::ir
