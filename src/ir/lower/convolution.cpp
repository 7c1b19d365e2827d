// SPDX-License-Identifier: Apache-2.0
//
// Convolutions over any number of dimensions: a sum over channels and taps of a product of two
// loads, which is the form that the contract skeleton recognises. Padding is a guard of the input's
// load. A transposed convolution is the same sum from the output's side: it reads, for each tap,
// the input that the tap spreads to this output, if there is one. Groups are a batch.
//
// Half types accumulate in float32, and the bias is added before rounding.
#include <fmt/format.h>

#include "ir/lower/window.hpp"

namespace ke::ir {
namespace {

struct Convolution {
  ValueId input, weight, id;
  bool transposed = false;
  int64_t batch = 0, groups = 1;
  int64_t channels = 0, outs = 0;  // of one group
  std::vector<Window> windows;     // one a spatial dimension
  std::vector<int64_t> extents;    // of the result, likewise

  // Parallel axes: n, g (when there are several groups), o, then one a spatial dimension.
  size_t first_place() const { return groups > 1 ? 3 : 2; }
  size_t channel_axis() const { return first_place() + windows.size(); }
};

// The extent of the result along a dimension; negative or zero when no window fits.
int64_t outputs_along(const Window& window, bool transposed, int64_t output_padding) {
  if (transposed) {
    return (window.extent - 1) * window.stride - 2 * window.padding + window.reach() +
           output_padding;
  }
  const int64_t free = window.extent + 2 * window.padding - window.reach();
  return free < 0 ? 0 : free / window.stride + 1;
}

// convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups)
Result<Convolution> convolution_of(const LoweringContext& context, const Call& call) {
  Convolution c;
  c.input = TRY(call.value(0, "input"));
  c.weight = TRY(call.value(1, "weight"));
  c.id = TRY(call.result());
  c.transposed = TRY(call.flag(6, "transposed", false));
  c.groups = TRY(call.integer(8, "groups", 1));
  const Value &input = context.value(c.input), &weight = context.value(c.weight);
  const Shape &x = input.shape, &w = weight.shape;
  const size_t in = c.transposed ? 0 : 1, out = 1 - in;  // dimensions of the weight
  bool fits = x.size() >= 3 && w.size() == x.size() && c.groups >= 1 && x[1] % c.groups == 0 &&
              w[0] % c.groups == 0 && input.dtype == weight.dtype &&
              input.dtype == context.value(c.id).dtype;
  fits = fits && w[in] == (c.transposed ? x[1] : x[1] / c.groups);
  if (!fits) return call.wrong("its operands do not fit");
  c.batch = x[0];
  c.channels = x[1] / c.groups;
  c.outs = c.transposed ? w[out] : w[out] / c.groups;
  const std::vector<int64_t> ones(x.size() - 2, 1), zeros(x.size() - 2, 0);
  const std::vector<int64_t> stride = TRY(by_dimension(call, 3, "stride", ones, 1));
  const std::vector<int64_t> padding = TRY(by_dimension(call, 4, "padding", zeros, 0));
  const std::vector<int64_t> dilation = TRY(by_dimension(call, 5, "dilation", ones, 1));
  const std::vector<int64_t> added = TRY(by_dimension(call, 7, "output_padding", zeros, 0));
  Shape expected = {c.batch, c.groups * c.outs};
  for (size_t d = 0; d < stride.size(); ++d) {
    c.windows.push_back({x[d + 2], w[d + 2], stride[d], padding[d], dilation[d]});
    c.extents.push_back(outputs_along(c.windows[d], c.transposed, added[d]));
    if (c.extents[d] <= 0 || w[d + 2] == 0) return call.wrong("its window does not fit");
  }
  expected.insert(expected.end(), c.extents.begin(), c.extents.end());
  if (context.value(c.id).shape != expected) return call.wrong("its declared shape is wrong");
  return c;
}

// The input that a tap of a transposed convolution spreads to an output.
Tap spread_tap(const Window& window, const ExprPtr& output, const ExprPtr& tap) {
  const ExprPtr start = binary(BinaryOp::add, output, index_constant(window.padding));
  const ExprPtr reached = multiply_add(tap, -window.dilation, start);
  const ExprPtr stride = index_constant(window.stride);
  const ExprPtr meets =
      binary(BinaryOp::eq, binary(BinaryOp::mod, reached, stride), index_constant(0));
  const Tap found = within(binary(BinaryOp::floor_div, reached, stride), window.extent);
  return {found.place, both(meets, found.inside)};
}

// The term of one channel and one tap of each window.
ExprPtr term_of(const LoweringContext& context, const Convolution& c, DType accumulator) {
  const ExprPtr out = axis(static_cast<int>(c.first_place()) - 1);
  const ExprPtr channel = axis(static_cast<int>(c.channel_axis()));
  const ExprPtr group = c.groups > 1 ? axis(1) : index_constant(0);
  Indices x_at = {axis(0), multiply_add(group, c.channels, channel)};
  Indices w_at = {multiply_add(group, c.outs, out), channel};
  if (c.transposed) w_at = {x_at[1], out};
  ExprPtr inside = constant_int(DType::boolean, 1);
  for (size_t d = 0; d < c.windows.size(); ++d) {
    const ExprPtr output = axis(static_cast<int>(c.first_place() + d));
    const ExprPtr at = axis(static_cast<int>(c.channel_axis() + 1 + d));
    const Tap tap =
        c.transposed ? spread_tap(c.windows[d], output, at) : tap_of(c.windows[d], output, at);
    x_at.push_back(tap.place);
    w_at.push_back(at);
    inside = both(inside, tap.inside);
  }
  const ExprPtr x = cast(accumulator, context.read(c.input, x_at));
  const ExprPtr w = cast(accumulator, context.read(c.weight, w_at));
  return binary(BinaryOp::mul, select(inside, x, number(accumulator, 0)), w);
}

TensorId add_product(LoweringContext& context, const Convolution& c, const std::string& name,
                     DType dtype) {
  std::vector<Axis> parallel = {{"n", c.batch}};
  if (c.groups > 1) parallel.push_back({"g", c.groups});
  parallel.push_back({"o", c.outs});
  std::vector<Axis> reduction = {{"c", c.channels}};
  for (size_t d = 0; d < c.windows.size(); ++d) {
    parallel.push_back({fmt::format("i{}", d), c.extents[d]});
    reduction.push_back({fmt::format("u{}", d), c.windows[d].taps});
  }
  const DType accumulator = compute_dtype(context.value(c.id).dtype);
  return context.add_stage({.name = name,
                            .dtype = dtype,
                            .parallel = parallel,
                            .reduction = reduction,
                            .reduce = ReduceOp::sum,
                            .accumulator = accumulator,
                            .body = term_of(context, c, accumulator)});
}

Result<void> convolution(LoweringContext& context, const Node& node) {
  const Call call(context, node);
  const Convolution c = TRY(convolution_of(context, call));
  const Value& result = context.value(c.id);
  if (result.dtype == DType::boolean) return call.unavailable("it is not lowered for boolean");
  const auto load_of = [&](TensorId product) {
    const Indices all = axes(result.shape.size());
    return context.load_at(product, reshape_indices(result.shape, all, context.shape_of(product)));
  };
  if (!call.has(2, "bias")) {
    const TensorId product = add_product(context, c, result.name, result.dtype);
    context.place(c.id, {load_of(product), product});
    return {};
  }
  const ValueId bias = TRY(call.value(2, "bias"));
  if (context.value(bias).shape != Shape{result.shape[1]})
    return call.wrong("its bias does not fit");
  const DType dtype = compute_dtype(result.dtype);
  const TensorId product = add_product(context, c, result.name + "_product", dtype);
  context.map(c.id,
              binary(BinaryOp::add, load_of(product), cast(dtype, context.read(bias, {axis(1)}))));
  return {};
}

}  // namespace

extern const LoweringFamily lowering_convolution;
const LoweringFamily lowering_convolution{"convolution",
                                          {{"aten.convolution.default", convolution}}};

}  // namespace ke::ir
