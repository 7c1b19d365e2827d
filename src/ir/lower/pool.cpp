// SPDX-License-Identifier: Apache-2.0
//
// Pools: a maximum or a sum over the taps of a window, guarded where the window leaves its operand,
// and the mean from the sum. The position of a maximum is a reduction of its own, only kept when
// something uses it.
#include <fmt/format.h>

#include <algorithm>

#include "ir/lower/window.hpp"

namespace ke::ir {
namespace {

// The operand, whose last dimensions have windows, and what a tap reads. Parallel axes are the
// result's dimensions, reduction axes the taps.
struct Pool {
  ValueId self, id;
  size_t leading = 0;  // dimensions without a window
  std::vector<Axis> taps;
  Indices at;      // of the operand
  ExprPtr inside;  // whether the tap is in the operand

  ExprPtr output(size_t d) const { return axis(static_cast<int>(leading + d)); }
};

// "aten.avg_pool2d.default" has windows over 2 dimensions.
size_t window_count(std::string_view op) {
  return static_cast<size_t>(op[op.find("pool") + 4] - '0');
}

Result<Pool> pool_of(const LoweringContext& context, const Call& call, size_t windows) {
  Pool pool{.self = TRY(call.value(0, "self")), .id = TRY(call.result())};
  const size_t rank = context.value(pool.self).shape.size();
  if (rank != windows + 1 && rank != windows + 2) return call.wrong("its operand does not fit");
  pool.leading = rank - windows;
  pool.at = axes(pool.leading);
  pool.inside = constant_int(DType::boolean, 1);
  return pool;
}

// Adds a dimension's window; the tap is made from the output's index and the tap's.
template <class MakeTap>
void add_window(Pool& pool, size_t rank, int64_t taps, const MakeTap& make_tap) {
  const size_t d = pool.taps.size();
  const Tap tap = make_tap(pool.output(d), axis(static_cast<int>(rank + d)));
  pool.taps.push_back({fmt::format("u{}", d), taps});
  pool.at.push_back(tap.place);
  pool.inside = both(pool.inside, tap.inside);
}

// The result's shape is the operand's, but for the windows' dimensions.
Result<void> require_extents(const LoweringContext& context, const Call& call, const Pool& pool,
                             const Shape& extents) {
  Shape expected = context.value(pool.self).shape;
  std::copy(extents.begin(), extents.end(),
            expected.begin() + static_cast<std::ptrdiff_t>(pool.leading));
  if (context.value(pool.id).shape == expected) return {};
  return call.wrong("its declared shape is wrong");
}

// With ceil_mode, a last window may reach past the padding, but starts before it.
int64_t outputs_of(const Window& window, bool ceil_mode) {
  const int64_t padded = window.extent + 2 * window.padding;
  const int64_t free = padded - window.reach() + (ceil_mode ? window.stride - 1 : 0);
  if (free < 0) return 0;
  const int64_t outputs = free / window.stride + 1;
  const bool starts_late = (outputs - 1) * window.stride >= window.extent + window.padding;
  return ceil_mode && starts_late ? outputs - 1 : outputs;
}

struct Sliding {
  std::vector<Window> windows;
  Shape extents;  // of the result
};

// (self, kernel_size, stride, padding, …)
Result<Sliding> sliding_of(const LoweringContext& context, const Call& call, const Pool& pool,
                           const std::vector<int64_t>& dilation, bool ceil_mode) {
  const Shape& shape = context.value(pool.self).shape;
  const std::vector<int64_t> zeros(dilation.size(), 0);
  const std::vector<int64_t> taps = TRY(by_dimension(call, 1, "kernel_size", zeros, 1));
  const std::vector<int64_t> stride = TRY(by_dimension(call, 2, "stride", taps, 1));
  const std::vector<int64_t> padding = TRY(by_dimension(call, 3, "padding", zeros, 0));
  Sliding sliding;
  for (size_t d = 0; d < dilation.size(); ++d) {
    const Window window{shape[pool.leading + d], taps[d], stride[d], padding[d], dilation[d]};
    sliding.windows.push_back(window);
    sliding.extents.push_back(outputs_of(window, ceil_mode));
    const bool fits = taps[d] >= 1 && 2 * padding[d] <= window.reach() && sliding.extents[d] >= 1;
    if (!fits) return call.wrong("its window does not fit");
  }
  return sliding;
}

TensorId reduce_taps(LoweringContext& context, const Pool& pool, ReduceOp op,
                     const std::string& name, DType dtype, const ExprPtr& element) {
  return context.add_stage({.name = name,
                            .dtype = dtype,
                            .parallel = parallel_axes(context.value(pool.id).shape),
                            .reduction = pool.taps,
                            .reduce = op,
                            .accumulator = element->dtype,
                            .body = element});
}

// --- Maxima -------------------------------------------------------------------------------------

// Of the taps that hold the maximum the first, or of NaN the last, as a position in the operand's
// windowed dimensions: the least of their positions, where those of NaN count downwards.
TensorId position_of(LoweringContext& context, const Pool& pool, const std::string& name,
                     const ExprPtr& maximum) {
  const Shape& shape = context.value(pool.self).shape;
  const ExprPtr x = context.read(pool.self, pool.at);
  ExprPtr position = index_constant(0);
  for (size_t d = pool.leading; d < shape.size(); ++d) {
    position = multiply_add(position, shape[d], pool.at[d]);
  }
  const ExprPtr none = highest(DType::int64);
  ExprPtr found = select(binary(BinaryOp::eq, x, maximum), position, none);
  if (is_floating(x->dtype)) {
    found = select(unary(UnaryOp::is_nan, x), unary(UnaryOp::neg, position), found);
  }
  const TensorId least = reduce_taps(context, pool, ReduceOp::minimum, name + "_least",
                                     DType::int64, select(pool.inside, found, none));
  const size_t rank = shape.size();
  return context.add_stage({.name = name,
                            .dtype = DType::int64,
                            .parallel = parallel_axes(context.value(pool.id).shape),
                            .body = unary(UnaryOp::abs, context.load_at(least, axes(rank)))});
}

// (self, kernel_size, stride, padding, dilation, ceil_mode) -> values, positions
Result<void> max_pool(LoweringContext& context, const Node& node) {
  const Call call(context, node);
  const size_t count = window_count(node.op);
  Pool pool = TRY(pool_of(context, call, count));
  const std::vector<int64_t> ones(count, 1);
  const std::vector<int64_t> dilation = TRY(by_dimension(call, 4, "dilation", ones, 1));
  const bool ceil_mode = TRY(call.flag(5, "ceil_mode", false));
  const Sliding sliding = TRY(sliding_of(context, call, pool, dilation, ceil_mode));
  TRY(require_extents(context, call, pool, sliding.extents));
  const Value& result = context.value(pool.id);
  const size_t rank = result.shape.size();
  for (const Window& window : sliding.windows) {
    add_window(pool, rank, window.taps, [&](const ExprPtr& output, const ExprPtr& tap) {
      return tap_of(window, output, tap);
    });
  }
  const ExprPtr x = context.read(pool.self, pool.at);
  if (x->dtype != result.dtype) return call.wrong("it changes the dtype");
  const TensorId values = reduce_taps(context, pool, ReduceOp::maximum, result.name, result.dtype,
                                      select(pool.inside, x, lowest(x->dtype)));
  const ExprPtr value = context.load_at(values, axes(rank));
  context.place(pool.id, {value, values});
  if (node.results.size() < 2) return {};
  const Value& second = context.value(node.results[1]);
  if (second.shape != result.shape || second.dtype != DType::int64) {
    return call.wrong("its positions do not fit");
  }
  const TensorId positions = position_of(context, pool, second.name, value);
  context.place(node.results[1], {context.load_at(positions, axes(rank)), positions});
  return {};
}

// --- Means --------------------------------------------------------------------------------------

// The sum over the taps, divided. Integers are divided towards zero.
Result<void> place_mean(LoweringContext& context, const Call& call, const Pool& pool,
                        const ExprPtr& divisor) {
  const Value& result = context.value(pool.id);
  const DType dtype = compute_dtype(result.dtype);
  if (dtype == DType::boolean || context.value(pool.self).dtype != result.dtype) {
    return call.unavailable("it is not defined for this dtype");
  }
  const ExprPtr x = cast(dtype, context.read(pool.self, pool.at));
  const TensorId total = reduce_taps(context, pool, ReduceOp::sum, result.name + "_sum", dtype,
                                     select(pool.inside, x, number(dtype, 0)));
  context.map(pool.id, binary(BinaryOp::div, context.load_at(total, axes(result.shape.size())),
                              cast(dtype, divisor)));
  return {};
}

// How many places of an output's window count: those in the operand, or also those in its padding.
ExprPtr counted(const Window& window, const ExprPtr& output, int64_t outputs, bool with_padding) {
  const int64_t low = with_padding ? -window.padding : 0;
  const int64_t high = window.extent + (with_padding ? window.padding : 0);
  const int64_t last_end = (outputs - 1) * window.stride - window.padding + window.taps;
  if (-window.padding >= low && last_end <= high) return index_constant(window.taps);
  const ExprPtr start = multiply_add(output, window.stride, index_constant(-window.padding));
  const ExprPtr end = binary(BinaryOp::add, start, index_constant(window.taps));
  return binary(BinaryOp::sub, binary(BinaryOp::minimum, end, index_constant(high)),
                binary(BinaryOp::maximum, start, index_constant(low)));
}

// (self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)
Result<void> mean_pool(LoweringContext& context, const Node& node) {
  const Call call(context, node);
  const size_t count = window_count(node.op);
  Pool pool = TRY(pool_of(context, call, count));
  const bool ceil_mode = TRY(call.flag(4, "ceil_mode", false));
  const bool with_padding = TRY(call.flag(5, "count_include_pad", true));
  const std::vector<int64_t> ones(count, 1);
  const Sliding sliding = TRY(sliding_of(context, call, pool, ones, ceil_mode));
  TRY(require_extents(context, call, pool, sliding.extents));
  ExprPtr divisor = index_constant(1);
  for (size_t d = 0; d < count; ++d) {
    const Window& window = sliding.windows[d];
    divisor = binary(BinaryOp::mul, divisor,
                     counted(window, pool.output(d), sliding.extents[d], with_padding));
    add_window(
        pool, pool.leading + count, window.taps,
        [&](const ExprPtr& output, const ExprPtr& tap) { return tap_of(window, output, tap); });
  }
  if (call.has(6, "divisor_override")) {
    const int64_t given = TRY(call.integer(6, "divisor_override"));
    if (given == 0) return call.wrong("its divisor is zero");
    divisor = index_constant(given);
  }
  return place_mean(context, call, pool, divisor);
}

// Output i of an adaptive pool is the mean of the places from floor(i * extent / outputs) to
// ceil((i + 1) * extent / outputs).
struct Share {
  ExprPtr start, end;
  int64_t taps = 0;  // of the output that has most
};

Share share_of(int64_t extent, int64_t outputs, const ExprPtr& i) {
  const ExprPtr divisor = index_constant(outputs);
  const ExprPtr first = binary(BinaryOp::mul, i, index_constant(extent));
  const ExprPtr past = binary(BinaryOp::add, first, index_constant(extent + outputs - 1));
  Share share{binary(BinaryOp::floor_div, first, divisor),
              binary(BinaryOp::floor_div, past, divisor)};
  for (int64_t output = 0; output < outputs; ++output) {
    const int64_t end = ((output + 1) * extent + outputs - 1) / outputs;
    share.taps = std::max(share.taps, end - output * extent / outputs);
  }
  return share;
}

// (self, output_size)
Result<void> adaptive_mean_pool(LoweringContext& context, const Node& node) {
  const Call call(context, node);
  const size_t count = window_count(node.op);
  Pool pool = TRY(pool_of(context, call, count));
  const Shape& shape = context.value(pool.self).shape;
  const std::vector<int64_t> zeros(count, 0);
  const Shape extents = TRY(by_dimension(call, 1, "output_size", zeros, 1));
  TRY(require_extents(context, call, pool, extents));
  ExprPtr divisor = index_constant(1);
  for (size_t d = 0; d < count; ++d) {
    const int64_t extent = shape[pool.leading + d];
    if (extent < 1) return call.wrong("its operand is empty");
    const Share share = share_of(extent, extents[d], pool.output(d));
    divisor = binary(BinaryOp::mul, divisor, binary(BinaryOp::sub, share.end, share.start));
    add_window(pool, shape.size(), share.taps, [&](const ExprPtr&, const ExprPtr& tap) {
      const ExprPtr place = binary(BinaryOp::add, share.start, tap);
      return Tap{place, binary(BinaryOp::lt, place, share.end)};
    });
  }
  return place_mean(context, call, pool, divisor);
}

}  // namespace

extern const LoweringFamily lowering_pool;
const LoweringFamily lowering_pool{"pool",
                                   {{"aten.max_pool2d_with_indices.default", max_pool},
                                    {"aten.max_pool3d_with_indices.default", max_pool},
                                    {"aten.avg_pool1d.default", mean_pool},
                                    {"aten.avg_pool2d.default", mean_pool},
                                    {"aten.avg_pool3d.default", mean_pool},
                                    {"aten.adaptive_avg_pool1d.default", adaptive_mean_pool},
                                    {"aten._adaptive_avg_pool2d.default", adaptive_mean_pool},
                                    {"aten._adaptive_avg_pool3d.default", adaptive_mean_pool}}};

}  // namespace ke::ir
