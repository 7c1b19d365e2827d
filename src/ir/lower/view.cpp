// SPDX-License-Identifier: Apache-2.0
//
// Views: each is a rewriting of indices, so none makes a stage. An index of the result is turned
// into an index of the operand; consumers then load the operand directly.
#include <algorithm>

#include "ir/lower/call.hpp"

namespace ke::ir {
namespace {

// What every view starts from.
struct View {
  ValueId self, id;
  const Shape& from;
  const Shape& to;
};

Result<View> view_of(LoweringContext& context, const Call& call) {
  const ValueId self = TRY(call.value(0, "self"));
  const ValueId id = TRY(call.result());
  if (context.value(self).dtype != context.value(id).dtype) {
    return call.wrong("a view does not change the dtype");
  }
  return View{self, id, context.value(self).shape, context.value(id).shape};
}

// Everything that keeps row-major order: view, reshape, squeeze, unsqueeze.
Result<void> reshape(LoweringContext& context, const Node& node) {
  const Call call(context, node);
  const View view = TRY(view_of(context, call));
  if (element_count(view.from) != element_count(view.to)) {
    return call.wrong("it changes the number of elements");
  }
  const Indices at = axes(view.to.size());
  if (const std::optional<TensorId> whole = context.whole(view.self)) {
    const Indices inside = reshape_indices(view.to, at, context.shape_of(*whole));
    context.place(view.id, {context.load_at(*whole, inside), whole});
  } else {
    const Indices inside = reshape_indices(view.to, at, view.from);
    context.place(view.id, {context.read(view.self, inside), {}});
  }
  return {};
}

Result<void> permute_by(LoweringContext& context, const Call& call, const View& view,
                        const std::vector<int64_t>& order) {
  const size_t rank = view.from.size();
  Indices inside(rank);
  bool fits = order.size() == rank && view.to.size() == rank;
  for (size_t d = 0; fits && d < rank; ++d) {
    const auto source = static_cast<size_t>(order[d]);
    fits = view.to[d] == view.from[source] && !inside[source];
    inside[source] = axis(static_cast<int>(d));
  }
  if (!fits) return call.wrong("its order of dimensions does not fit");
  const bool identity = std::is_sorted(order.begin(), order.end());
  context.place(view.id, {context.read(view.self, inside),
                          identity ? context.whole(view.self) : std::nullopt});
  return {};
}

Result<void> permute(LoweringContext& context, const Node& node) {
  const Call call(context, node);
  const View view = TRY(view_of(context, call));
  std::vector<int64_t> order = TRY(call.integers(1, "dims"));
  for (int64_t& dim : order) dim = TRY(wrap_dimension(dim, view.from.size(), node.op));
  return permute_by(context, call, view, order);
}

// transpose(self, dim0, dim1) and t(self)
Result<void> transpose(LoweringContext& context, const Node& node) {
  const Call call(context, node);
  const View view = TRY(view_of(context, call));
  const size_t rank = view.from.size();
  std::vector<int64_t> order;
  for (size_t d = 0; d < rank; ++d) order.push_back(static_cast<int64_t>(d));
  if (rank > 0) {
    const bool is_t = node.op == "aten.t.default";
    const int64_t a = is_t ? 0 : TRY(wrap_dimension(TRY(call.integer(1, "dim0")), rank, node.op));
    const int64_t b = is_t ? static_cast<int64_t>(rank) - 1
                           : TRY(wrap_dimension(TRY(call.integer(2, "dim1")), rank, node.op));
    std::swap(order[static_cast<size_t>(a)], order[static_cast<size_t>(b)]);
  }
  return permute_by(context, call, view, order);
}

Result<void> expand(LoweringContext& context, const Node& node) {
  const Call call(context, node);
  const View view = TRY(view_of(context, call));
  const ExprPtr element = TRY(context.read_broadcast(view.self, view.to));
  context.place(view.id, {element, view.from == view.to ? context.whole(view.self) : std::nullopt});
  return {};
}

// Places result `id` at a part of `self`: along `dim`, index i of the result is start + i * step.
Result<void> place_slice(LoweringContext& context, const Call& call, ValueId self, ValueId id,
                         int64_t dim, int64_t start, int64_t step) {
  const Shape& from = context.value(self).shape;
  const Shape& to = context.value(id).shape;
  const auto d = static_cast<size_t>(dim);
  Shape expected = from;
  if (d < from.size() && to.size() == from.size()) expected[d] = to[d];
  const bool fits = d < from.size() && to == expected && start >= 0 && step >= 1 &&
                    (to[d] == 0 || start + (to[d] - 1) * step < from[d]) &&
                    context.value(self).dtype == context.value(id).dtype;
  if (!fits) return call.wrong("its part does not fit");
  Indices inside = axes(to.size());
  inside[d] = binary(BinaryOp::add, binary(BinaryOp::mul, inside[d], index_constant(step)),
                     index_constant(start));
  context.place(id, {context.read(self, inside), from == to ? context.whole(self) : std::nullopt});
  return {};
}

Result<void> slice(LoweringContext& context, const Node& node) {
  const Call call(context, node);
  const View view = TRY(view_of(context, call));
  const int64_t dim =
      TRY(wrap_dimension(TRY(call.integer(1, "dim", 0)), view.from.size(), node.op));
  if (view.from.empty()) return call.wrong("its operand has no dimensions");
  const int64_t extent = view.from[static_cast<size_t>(dim)];
  int64_t start = TRY(call.integer(2, "start", 0));
  if (start < 0) start += extent;
  start = std::clamp<int64_t>(start, 0, extent);
  const int64_t step = TRY(call.integer(4, "step", 1));
  if (step < 1 || step > (int64_t{1} << 40)) {
    // A step past the end leaves one element at most.
    if (step < 1) return call.wrong("its step is not positive");
    return place_slice(context, call, view.self, view.id, dim, start, int64_t{1} << 40);
  }
  return place_slice(context, call, view.self, view.id, dim, start, step);
}

Result<void> select_index(LoweringContext& context, const Node& node) {
  const Call call(context, node);
  const View view = TRY(view_of(context, call));
  if (view.from.empty()) return call.wrong("its operand has no dimensions");
  const auto dim = static_cast<size_t>(
      TRY(wrap_dimension(TRY(call.integer(1, "dim")), view.from.size(), node.op)));
  int64_t index = TRY(call.integer(2, "index"));
  if (index < 0) index += view.from[dim];
  Shape expected = view.from;
  expected.erase(expected.begin() + static_cast<std::ptrdiff_t>(dim));
  if (index < 0 || index >= view.from[dim] || view.to != expected) {
    return call.wrong("its index is out of range");
  }
  Indices inside = axes(view.to.size());
  inside.insert(inside.begin() + static_cast<std::ptrdiff_t>(dim), index_constant(index));
  context.place(view.id, {context.read(view.self, inside), {}});
  return {};
}

// split, split_with_sizes: consecutive parts along a dimension; the results' shapes give the sizes.
Result<void> split(LoweringContext& context, const Node& node) {
  const Call call(context, node);
  const ValueId self = TRY(call.value(0, "self"));
  const size_t rank = context.value(self).shape.size();
  const int64_t dim = TRY(wrap_dimension(TRY(call.integer(2, "dim", 0)), rank, node.op));
  int64_t start = 0;
  for (const ValueId id : node.results) {
    TRY(place_slice(context, call, self, id, dim, start, 1));
    start += context.value(id).shape[static_cast<size_t>(dim)];
  }
  return {};
}

Result<void> unbind(LoweringContext& context, const Node& node) {
  const Call call(context, node);
  const ValueId self = TRY(call.value(0, "self"));
  const Shape& from = context.value(self).shape;
  const auto dim = static_cast<size_t>(
      TRY(wrap_dimension(TRY(call.integer(1, "dim", 0)), from.size(), node.op)));
  Shape expected = from;
  if (dim < from.size()) expected.erase(expected.begin() + static_cast<std::ptrdiff_t>(dim));
  int64_t index = 0;
  for (const ValueId id : node.results) {
    if (dim >= from.size() || index >= from[dim] || context.value(id).shape != expected) {
      return call.wrong("its results do not fit");
    }
    Indices inside = axes(expected.size());
    inside.insert(inside.begin() + static_cast<std::ptrdiff_t>(dim), index_constant(index++));
    context.place(id, {context.read(self, inside), {}});
  }
  return {};
}

Result<void> flip(LoweringContext& context, const Node& node) {
  const Call call(context, node);
  const View view = TRY(view_of(context, call));
  if (view.from != view.to) return call.wrong("it changes the shape");
  Indices inside = axes(view.to.size());
  for (const int64_t given : TRY(call.integers(1, "dims"))) {
    const auto d = static_cast<size_t>(TRY(wrap_dimension(given, view.to.size(), node.op)));
    if (d < inside.size()) {
      inside[d] = binary(BinaryOp::sub, index_constant(view.to[d] - 1), inside[d]);
    }
  }
  context.place(view.id, {context.read(view.self, inside), {}});
  return {};
}

// Each dimension wraps around its own extent; new ones lead.
Result<void> repeat(LoweringContext& context, const Node& node) {
  const Call call(context, node);
  const View view = TRY(view_of(context, call));
  const std::vector<int64_t> repeats = TRY(call.integers(1, "repeats"));
  const size_t missing = view.to.size() - std::min(view.to.size(), view.from.size());
  bool fits = repeats.size() == view.to.size() && view.from.size() <= view.to.size();
  Indices inside;
  for (size_t d = 0; fits && d < view.from.size(); ++d) {
    fits = view.to[d + missing] == view.from[d] * repeats[d + missing];
    inside.push_back(binary(BinaryOp::mod, axis(static_cast<int>(d + missing)),
                            index_constant(std::max<int64_t>(view.from[d], 1))));
  }
  if (!fits) return call.wrong("its repeats do not fit");
  context.place(view.id, {context.read(view.self, inside), {}});
  return {};
}

// Dimension `dim` becomes the last: index w, offset o read at w * step + o.
Result<void> unfold(LoweringContext& context, const Node& node) {
  const Call call(context, node);
  const View view = TRY(view_of(context, call));
  const auto dim = static_cast<size_t>(
      TRY(wrap_dimension(TRY(call.integer(1, "dimension")), view.from.size(), node.op)));
  const int64_t step = TRY(call.integer(3, "step"));
  if (view.to.size() != view.from.size() + 1 || dim >= view.from.size() || step < 1 ||
      (view.to[dim] > 0 && (view.to[dim] - 1) * step + view.to.back() > view.from[dim])) {
    return call.wrong("its windows do not fit");
  }
  Indices inside = axes(view.from.size());
  inside[dim] = binary(BinaryOp::add, binary(BinaryOp::mul, inside[dim], index_constant(step)),
                       axis(static_cast<int>(view.from.size())));
  context.place(view.id, {context.read(view.self, inside), {}});
  return {};
}

// as_strided(self, size, stride, storage_offset): of the storage, which is known to hold the
// operand's elements in row-major order only where the operand is a whole tensor.
Result<void> as_strided(LoweringContext& context, const Node& node) {
  const Call call(context, node);
  const View view = TRY(view_of(context, call));
  const bool dense = context.value(view.self).strides == contiguous_strides(view.from);
  if (!context.whole(view.self) || !dense) {
    return call.unavailable("it is lowered for whole contiguous tensors only");
  }
  const std::vector<int64_t> strides = TRY(call.integers(2, "stride"));
  const int64_t offset = TRY(call.integer(3, "storage_offset", 0));
  const int64_t count = element_count(view.from);
  bool fits = strides.size() == view.to.size() && offset >= 0 && offset < count;
  ExprPtr position = index_constant(offset);
  int64_t last = offset;
  for (size_t d = 0; fits && d < strides.size(); ++d) {
    fits = view.to[d] >= 1 && strides[d] >= 0 && strides[d] < count && view.to[d] <= count;
    if (!fits) break;
    last = std::min(count, last + (view.to[d] - 1) * strides[d]);
    position = binary(BinaryOp::add, position,
                      binary(BinaryOp::mul, axis(static_cast<int>(d)), index_constant(strides[d])));
  }
  if (!fits || last >= count) return call.wrong("it leaves its operand");
  context.place(view.id,
                {context.read(view.self, reshape_indices({count}, {position}, view.from)), {}});
  return {};
}

// Of dimensions dim1 and dim2 the elements (i, i + offset), as a new last dimension.
Result<void> diagonal(LoweringContext& context, const Node& node) {
  const Call call(context, node);
  const View view = TRY(view_of(context, call));
  const size_t rank = view.from.size();
  const int64_t offset = TRY(call.integer(1, "offset", 0));
  const auto first =
      static_cast<size_t>(TRY(wrap_dimension(TRY(call.integer(2, "dim1", 0)), rank, node.op)));
  const auto second =
      static_cast<size_t>(TRY(wrap_dimension(TRY(call.integer(3, "dim2", 1)), rank, node.op)));
  bool fits = rank >= 2 && first != second && view.to.size() == rank - 1;
  Indices inside(rank);
  for (size_t d = 0, next = 0; fits && d < rank; ++d) {
    if (d == first || d == second) continue;
    fits = view.to[next] == view.from[d];
    inside[d] = axis(static_cast<int>(next++));
  }
  const int64_t down = std::max<int64_t>(-offset, 0), right = std::max<int64_t>(offset, 0);
  fits = fits && down <= view.from[first] && right <= view.from[second] &&
         view.to.back() <= view.from[first] - down && view.to.back() <= view.from[second] - right;
  if (!fits) return call.wrong("its dimensions do not fit");
  const ExprPtr along = axis(static_cast<int>(rank) - 2);
  inside[first] = binary(BinaryOp::add, along, index_constant(down));
  inside[second] = binary(BinaryOp::add, along, index_constant(right));
  context.place(view.id, {context.read(view.self, inside), {}});
  return {};
}

}  // namespace

extern const LoweringFamily lowering_view;
const LoweringFamily lowering_view{"view",
                                   {{"aten.view.default", reshape},
                                    {"aten._unsafe_view.default", reshape},
                                    {"aten.reshape.default", reshape},
                                    {"aten.squeeze.default", reshape},
                                    {"aten.squeeze.dim", reshape},
                                    {"aten.squeeze.dims", reshape},
                                    {"aten.unsqueeze.default", reshape},
                                    {"aten.permute.default", permute},
                                    {"aten.transpose.int", transpose},
                                    {"aten.t.default", transpose},
                                    {"aten.expand.default", expand},
                                    {"aten.slice.Tensor", slice},
                                    {"aten.select.int", select_index},
                                    {"aten.split.Tensor", split},
                                    {"aten.split_with_sizes.default", split},
                                    {"aten.unbind.int", unbind},
                                    {"aten.flip.default", flip},
                                    {"aten.repeat.default", repeat},
                                    {"aten.as_strided.default", as_strided},
                                    {"aten.diagonal.default", diagonal},
                                    {"aten.unfold.default", unfold}}};

}  // namespace ke::ir
