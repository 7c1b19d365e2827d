// SPDX-License-Identifier: Apache-2.0
//
// Layer, group and batch normalisation: two-pass moments of each row, one reciprocal deviation a
// row, then a map. Group norm's map runs over the grouped shape [N, group, channels, ...], so that
// its rows are plain axes there too.
#include "ir/lower/reduce.hpp"

namespace ke::ir {
namespace {

// The normalisation of one operand: how it is walked and the statistics of its rows.
struct Statistics {
  TensorId mean, reciprocal;  // one a row: mean and 1 / sqrt(variance + eps)
};

Statistics statistics_of(LoweringContext& context, const Rows& rows, const std::string& name,
                         const ExprPtr& element, double eps) {
  const Moments moments = mean_and_squares(context, rows, name, element);
  const DType dtype = element->dtype;
  const ExprPtr squares = context.load_at(moments.squares, axes(rows.parallel.size()));
  const ExprPtr variance =
      binary(BinaryOp::div, squares, number(dtype, static_cast<double>(rows.count)));
  const ExprPtr deviation =
      unary(UnaryOp::rsqrt, binary(BinaryOp::add, variance, number(dtype, eps)));
  return {moments.mean, row_map(context, rows, name + "_rstd", dtype, deviation)};
}

// (x - mean) * reciprocal * weight + bias, where weight and bias may be null.
ExprPtr normalized(const ExprPtr& x, const ExprPtr& mean, const ExprPtr& reciprocal,
                   const ExprPtr& weight, const ExprPtr& bias) {
  ExprPtr result = binary(BinaryOp::mul, binary(BinaryOp::sub, x, mean), reciprocal);
  if (weight) result = binary(BinaryOp::mul, result, weight);
  if (bias) result = binary(BinaryOp::add, result, bias);
  return result;
}

// A statistic as a result of the operation, in whatever dtype that is declared to have.
Result<void> place_statistic(LoweringContext& context, const Call& call, size_t position,
                             const Rows& rows, TensorId tensor) {
  const ValueId id = TRY(call.result(position));
  const ExprPtr value = context.load_at(tensor, axes(rows.parallel.size()));
  if (value->dtype == context.value(id).dtype) return place_rows(context, call, id, rows, tensor);
  return place_row_map(context, call, id, rows, value);
}

// A vector argument (weight, bias) at the given indices, or null when absent.
Result<ExprPtr> optional_at(const LoweringContext& context, const Call& call, size_t position,
                            std::string_view name, DType dtype, const Shape& shape,
                            const Indices& indices) {
  if (!call.has(position, name)) return ExprPtr{};
  const ValueId id = TRY(call.value(position, name));
  if (context.value(id).shape != shape) return call.wrong("its weight or bias does not fit");
  return cast(dtype, context.read(id, indices));
}

Result<DType> floating_result(const LoweringContext& context, const Call& call) {
  const DType dtype = context.value(TRY(call.result())).dtype;
  if (!is_floating(dtype)) return call.unavailable("it is lowered for floating types only");
  return compute_dtype(dtype);
}

// native_layer_norm(input, normalized_shape, weight, bias, eps) -> (out, mean, rstd)
Result<void> layer_norm(LoweringContext& context, const Node& node) {
  const Call call(context, node);
  const ValueId self = TRY(call.value(0, "input")), id = TRY(call.result());
  const Shape& shape = context.value(self).shape;
  const Shape inner = TRY(call.integers(1, "normalized_shape"));
  if (inner.empty() || inner.size() > shape.size() || context.value(id).shape != shape ||
      !std::equal(inner.rbegin(), inner.rend(), shape.rbegin())) {
    return call.wrong("its normalized shape does not fit");
  }
  std::vector<int64_t> dims;
  for (size_t d = shape.size() - inner.size(); d < shape.size(); ++d) {
    dims.push_back(static_cast<int64_t>(d));
  }
  const DType dtype = TRY(floating_result(context, call));
  const Rows rows = rows_of(shape, dims);
  const ExprPtr in_row = cast(dtype, context.read(self, rows.indices));
  const Statistics found =
      statistics_of(context, rows, context.value(id).name, in_row, TRY(call.number(4, "eps")));
  TRY(place_statistic(context, call, 1, rows, found.mean));
  TRY(place_statistic(context, call, 2, rows, found.reciprocal));

  const Indices row = rows.row_of_element(), at = axes(inner.size(), shape.size() - inner.size());
  const ExprPtr weight = TRY(optional_at(context, call, 2, "weight", dtype, inner, at));
  const ExprPtr bias = TRY(optional_at(context, call, 3, "bias", dtype, inner, at));
  const ExprPtr x = cast(dtype, context.read(self, axes(shape.size())));
  context.map(id, normalized(x, context.load_at(found.mean, row),
                             context.load_at(found.reciprocal, row), weight, bias));
  return {};
}

// native_group_norm(input, weight, bias, N, C, HxW, group, eps) -> (out, mean, rstd)
Result<void> group_norm(LoweringContext& context, const Node& node) {
  const Call call(context, node);
  const ValueId self = TRY(call.value(0, "input")), id = TRY(call.result());
  const Shape& shape = context.value(self).shape;
  const int64_t groups = TRY(call.integer(6, "group"));
  if (shape.size() < 2 || groups < 1 || shape[1] % groups != 0 ||
      context.value(id).shape != shape) {
    return call.wrong("its groups do not fit");
  }
  const int64_t channels = shape[1] / groups;  // of one group
  Shape grouped = {shape[0], groups, channels};
  grouped.insert(grouped.end(), shape.begin() + 2, shape.end());
  std::vector<int64_t> dims;
  for (size_t d = 2; d < grouped.size(); ++d) dims.push_back(static_cast<int64_t>(d));
  const Rows rows = rows_of(grouped, dims);
  const DType dtype = TRY(floating_result(context, call));
  const std::string& name = context.value(id).name;
  const ExprPtr in_row =
      cast(dtype, context.read(self, reshape_indices(grouped, rows.indices, shape)));
  const Statistics found = statistics_of(context, rows, name, in_row, TRY(call.number(7, "eps")));
  TRY(place_statistic(context, call, 1, rows, found.mean));
  TRY(place_statistic(context, call, 2, rows, found.reciprocal));

  const ExprPtr channel =
      binary(BinaryOp::add, binary(BinaryOp::mul, axis(1), index_constant(channels)), axis(2));
  const ExprPtr weight = TRY(optional_at(context, call, 1, "weight", dtype, {shape[1]}, {channel}));
  const ExprPtr bias = TRY(optional_at(context, call, 2, "bias", dtype, {shape[1]}, {channel}));
  const Indices row = rows.row_of_element(), all = axes(grouped.size());
  const ExprPtr x = cast(dtype, context.read(self, reshape_indices(grouped, all, shape)));
  const TensorId out =
      context.add_stage({.name = name,
                         .dtype = context.value(id).dtype,
                         .parallel = parallel_axes(grouped),
                         .body = normalized(x, context.load_at(found.mean, row),
                                            context.load_at(found.reciprocal, row), weight, bias)});
  const Indices inside = reshape_indices(shape, axes(shape.size()), grouped);
  context.place(id, {context.load_at(out, inside), out});
  return {};
}

// What the batch norms share: the operand, its rows (one a channel) and the affine arguments.
struct Batch {
  ValueId self, id;
  DType dtype;
  Rows rows;
  ExprPtr x, weight, bias;  // at an element of the result
};

Result<Batch> batch_of(LoweringContext& context, const Call& call) {
  const ValueId self = TRY(call.value(0, "input")), id = TRY(call.result());
  const Shape& shape = context.value(self).shape;
  if (shape.size() < 2 || context.value(id).shape != shape) {
    return call.wrong("its operand has no channels");
  }
  std::vector<int64_t> dims = {0};
  for (size_t d = 2; d < shape.size(); ++d) dims.push_back(static_cast<int64_t>(d));
  const DType dtype = TRY(floating_result(context, call));
  const Shape channels = {shape[1]};
  const ExprPtr weight = TRY(optional_at(context, call, 1, "weight", dtype, channels, {axis(1)}));
  const ExprPtr bias = TRY(optional_at(context, call, 2, "bias", dtype, channels, {axis(1)}));
  const ExprPtr x = cast(dtype, context.read(self, axes(shape.size())));
  return Batch{self, id, dtype, rows_of(shape, dims), x, weight, bias};
}

// running * (1 - momentum) + momentum * now, as a result of one value a channel.
Result<void> place_running(LoweringContext& context, const Call& call, size_t position,
                           const Batch& batch, const ExprPtr& running, const ExprPtr& now) {
  const double momentum = TRY(call.number(6, "momentum"));
  const ExprPtr kept = binary(BinaryOp::mul, running, number(batch.dtype, 1 - momentum));
  const ExprPtr added = binary(BinaryOp::mul, now, number(batch.dtype, momentum));
  return place_row_map(context, call, TRY(call.result(position)), batch.rows,
                       binary(BinaryOp::add, kept, added));
}

// Statistics of the batch itself: _native_batch_norm_legit(.no_stats) and its functional form,
// which also returns the running statistics.
Result<void> batch_norm_training(LoweringContext& context, const Call& call, bool functional,
                                 size_t eps_position) {
  const Batch batch = TRY(batch_of(context, call));
  const std::string& name = context.value(batch.id).name;
  const ExprPtr in_row = cast(batch.dtype, context.read(batch.self, batch.rows.indices));
  const double eps = TRY(call.number(eps_position, "eps"));
  const Statistics found = statistics_of(context, batch.rows, name, in_row, eps);
  TRY(place_statistic(context, call, 1, batch.rows, found.mean));
  TRY(place_statistic(context, call, 2, batch.rows, found.reciprocal));
  context.map(batch.id,
              normalized(batch.x, context.load_at(found.mean, {axis(1)}),
                         context.load_at(found.reciprocal, {axis(1)}), batch.weight, batch.bias));
  if (!functional || !call.has(3, "running_mean") || !call.has(4, "running_var")) return {};
  // The unbiased variance, from the deviation: (1 / rstd^2 - eps) * n / (n - 1).
  const ExprPtr rstd = context.load_at(found.reciprocal, {axis(0)});
  const ExprPtr one = number(batch.dtype, 1);
  const ExprPtr biased =
      binary(BinaryOp::sub, binary(BinaryOp::div, one, binary(BinaryOp::mul, rstd, rstd)),
             number(batch.dtype, eps));
  const auto count = static_cast<double>(batch.rows.count);
  const ExprPtr unbiased = binary(BinaryOp::mul, biased, number(batch.dtype, count / (count - 1)));
  const Shape channels = {context.value(batch.self).shape[1]};
  const ExprPtr old_mean =
      TRY(optional_at(context, call, 3, "running_mean", batch.dtype, channels, {axis(0)}));
  const ExprPtr old_variance =
      TRY(optional_at(context, call, 4, "running_var", batch.dtype, channels, {axis(0)}));
  TRY(place_running(context, call, 3, batch, old_mean, context.load_at(found.mean, {axis(0)})));
  return place_running(context, call, 4, batch, old_variance, unbiased);
}

// With given statistics (inference): only the first result is of use.
Result<void> batch_norm_inference(LoweringContext& context, const Call& call, size_t eps_position) {
  const Batch batch = TRY(batch_of(context, call));
  const Shape channels = {context.value(batch.self).shape[1]};
  const ExprPtr mean =
      TRY(optional_at(context, call, 3, "running_mean", batch.dtype, channels, {axis(1)}));
  const ExprPtr variance =
      TRY(optional_at(context, call, 4, "running_var", batch.dtype, channels, {axis(0)}));
  if (!mean || !variance) return call.wrong("its running statistics are missing");
  const ExprPtr eps = number(batch.dtype, TRY(call.number(eps_position, "eps")));
  const TensorId rstd =
      row_map(context, batch.rows, context.value(batch.id).name + "_rstd", batch.dtype,
              unary(UnaryOp::rsqrt, binary(BinaryOp::add, variance, eps)));
  context.map(batch.id, normalized(batch.x, mean, context.load_at(rstd, {axis(1)}), batch.weight,
                                   batch.bias));
  return {};
}

// (input, weight, bias, running_mean, running_var, training, momentum, eps)
Result<void> batch_norm(LoweringContext& context, const Node& node) {
  const Call call(context, node);
  const bool training = TRY(call.flag(5, "training", true));
  if (!training) return batch_norm_inference(context, call, 7);
  return batch_norm_training(context, call, node.op.find("functional") != std::string::npos, 7);
}

// (input, weight, bias, training, momentum, eps)
Result<void> batch_norm_without_state(LoweringContext& context, const Node& node) {
  return batch_norm_training(context, Call(context, node), false, 5);
}

// (input, weight, bias, running_mean, running_var, momentum, eps)
Result<void> batch_norm_no_training(LoweringContext& context, const Node& node) {
  return batch_norm_inference(context, Call(context, node), 6);
}

}  // namespace

extern const LoweringFamily lowering_norm;
const LoweringFamily lowering_norm{
    "norm",
    {{"aten.native_layer_norm.default", layer_norm},
     {"aten.native_group_norm.default", group_norm},
     {"aten._native_batch_norm_legit.default", batch_norm},
     {"aten._native_batch_norm_legit_functional.default", batch_norm},
     {"aten._native_batch_norm_legit.no_stats", batch_norm_without_state},
     {"aten._native_batch_norm_legit_no_training.default", batch_norm_no_training}}};

}  // namespace ke::ir
