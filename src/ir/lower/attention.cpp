// SPDX-License-Identifier: Apache-2.0
//
// Scaled dot-product attention in the fused forms that PyTorch's backends export: two products and
// the softmax between them, all in the compute type. Only the first result has a lowering.
#include <cmath>

#include "ir/lower/reduce.hpp"

namespace ke::ir {
namespace {

struct Attention {
  ValueId query, key, value, id;
  Shape shape;        // of the scores: batch, heads, queries, keys
  int64_t width = 0;  // of a query and of a key
  DType dtype;
};

Result<Attention> attention_of(const LoweringContext& context, const Call& call) {
  Attention a{.query = TRY(call.value(0, "query")),
              .key = TRY(call.value(1, "key")),
              .value = TRY(call.value(2, "value")),
              .id = TRY(call.result()),
              .dtype = DType::float32};
  const Value &query = context.value(a.query), &key = context.value(a.key);
  const Value &value = context.value(a.value), &result = context.value(a.id);
  const Shape &q = query.shape, &k = key.shape, &v = value.shape;
  const bool fits = q.size() == 4 && k.size() == 4 && v.size() == 4 && q[0] == k[0] &&
                    q[1] == k[1] && q[3] == k[3] && v[0] == k[0] && v[1] == k[1] && v[2] == k[2] &&
                    result.shape == Shape{q[0], q[1], q[2], v[3]};
  const bool alike = query.dtype == key.dtype && key.dtype == value.dtype &&
                     value.dtype == result.dtype && is_floating(result.dtype);
  if (!fits || !alike) return call.wrong("its operands do not fit");
  if (k[2] == 0) return call.unavailable("it is not lowered for no keys");
  a.shape = {q[0], q[1], q[2], k[2]};
  a.width = q[3];
  a.dtype = compute_dtype(result.dtype);
  return a;
}

TensorId multiply_at(LoweringContext& context, const Attention& a, const std::string& name,
                     DType dtype, std::vector<Axis> parallel, const Axis& inner,
                     const ExprPtr& left, const ExprPtr& right) {
  parallel.insert(parallel.begin(), {{"b", a.shape[0]}, {"h", a.shape[1]}});
  return context.add_stage(
      {.name = name,
       .dtype = dtype,
       .parallel = std::move(parallel),
       .reduction = {inner},
       .reduce = ReduceOp::sum,
       .accumulator = a.dtype,
       .body = binary(BinaryOp::mul, cast(a.dtype, left), cast(a.dtype, right))});
}

// What the softmax is taken of: scaled scores, with the mask added, and -inf where causality
// forbids a key.
Result<TensorId> logits_of(LoweringContext& context, const Call& call, const Attention& a,
                           const Arg& mask, bool causal) {
  const std::string& name = context.value(a.id).name;
  const TensorId scores =
      multiply_at(context, a, name + "_scores", a.dtype, {{"m", a.shape[2]}, {"n", a.shape[3]}},
                  {"k", a.width}, context.read(a.query, {axis(0), axis(1), axis(2), axis(4)}),
                  context.read(a.key, {axis(0), axis(1), axis(3), axis(4)}));
  const double scale =
      TRY(call.number(Call::kKeyword, "scale", 1 / std::sqrt(static_cast<double>(a.width))));
  ExprPtr logit = binary(BinaryOp::mul, context.load_at(scores, axes(4)), number(a.dtype, scale));
  if (const auto* id = std::get_if<ValueId>(&mask.data)) {
    if (!is_floating(context.value(*id).dtype)) return call.wrong("its mask is not floating");
    logit = binary(BinaryOp::add, logit, cast(a.dtype, TRY(context.read_broadcast(*id, a.shape))));
  }
  if (causal) {
    logit = select(binary(BinaryOp::le, axis(3), axis(2)), logit, lowest(a.dtype));
  }
  return context.add_stage({.name = name + "_logits",
                            .dtype = a.dtype,
                            .parallel = parallel_axes(a.shape),
                            .body = logit});
}

// The softmax of each row, and zeros where everything is masked.
TensorId weights_of(LoweringContext& context, const Attention& a, TensorId logits) {
  const std::string& name = context.value(a.id).name;
  const Rows rows = rows_of(a.shape, {3});
  const ExprPtr logit = context.load_at(logits, axes(4));
  const TensorId top = reduce(context, rows, ReduceOp::maximum, name + "_max", a.dtype, logit);
  const ExprPtr highest_logit = context.load_at(top, axes(3));
  const ExprPtr power = unary(UnaryOp::exp, binary(BinaryOp::sub, logit, highest_logit));
  const TensorId total = reduce(context, rows, ReduceOp::sum, name + "_sum", a.dtype, power);
  const ExprPtr weight = binary(BinaryOp::div, power, context.load_at(total, axes(3)));
  const ExprPtr masked = binary(BinaryOp::eq, highest_logit, lowest(a.dtype));
  return context.add_stage({.name = name + "_weights",
                            .dtype = a.dtype,
                            .parallel = parallel_axes(a.shape),
                            .body = select(masked, number(a.dtype, 0), weight)});
}

// (query, key, value, [attn_bias, compute_log_sumexp,] dropout_p, is_causal, *, [attn_mask,] scale)
Result<void> attention(LoweringContext& context, const Node& node) {
  const Call call(context, node);
  const Attention a = TRY(attention_of(context, call));
  const bool efficient = node.op.find("efficient") != std::string::npos;
  const size_t first = efficient ? 5 : 3;
  if (TRY(call.number(first, "dropout_p", 0.0)) != 0) {
    return call.unavailable("it is not lowered with dropout");
  }
  const bool causal = TRY(call.flag(first + 1, "is_causal", false));
  const Arg& mask = efficient ? call.arg(3, "attn_bias") : call.arg(Call::kKeyword, "attn_mask");
  const TensorId logits = TRY(logits_of(context, call, a, mask, causal));
  const TensorId weights = weights_of(context, a, logits);
  const Value& result = context.value(a.id);
  const TensorId out = multiply_at(context, a, result.name, result.dtype,
                                   {{"m", a.shape[2]}, {"n", result.shape[3]}}, {"k", a.shape[3]},
                                   context.load_at(weights, {axis(0), axis(1), axis(2), axis(4)}),
                                   context.read(a.value, {axis(0), axis(1), axis(4), axis(3)}));
  context.place(a.id, {context.load_at(out, axes(4)), out});
  return {};
}

}  // namespace

extern const LoweringFamily lowering_attention;
const LoweringFamily lowering_attention{
    "attention",
    {{"aten._scaled_dot_product_efficient_attention.default", attention},
     {"aten._scaled_dot_product_flash_attention_for_cpu.default", attention}}};

}  // namespace ke::ir
