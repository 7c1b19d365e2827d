// SPDX-License-Identifier: Apache-2.0
//
// Contractions made by hand, for tests and benchmarks of the skeleton: a (batched) matrix product
// of two inputs in any storage order, an optional prologue, and an epilogue of one's choice.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "ir/plan.hpp"

namespace ke::x86 {

enum class Epilogue : uint8_t { none, bias_leaky, swish, mish_twice, both_outputs };
enum class Prologue : uint8_t { none, scale_left, scale_right };

struct ProductExample {
  int64_t batch = 0;  // 0: no batch axis
  int64_t m = 1, k = 1, n = 1;
  bool left_transposed = false;   // stored [k, m]
  bool right_transposed = false;  // stored [n, k]
  ir::DType dtype = ir::DType::float32;
  Epilogue epilogue = Epilogue::none;
  Prologue prologue = Prologue::none;
  ir::Schedule schedule;
};

struct ExampleKernel {
  ir::Program program;
  ir::FusedKernel kernel;
};

namespace example {

inline ir::TensorId add_tensor(ir::Program& program, std::string name, ir::DType dtype,
                               std::vector<int64_t> shape, ir::Role role) {
  std::vector<int64_t> strides = ir::contiguous_strides(shape);
  program.tensors.push_back({.name = std::move(name),
                             .dtype = dtype,
                             .shape = std::move(shape),
                             .strides = std::move(strides),
                             .role = role});
  const ir::TensorId id{static_cast<int>(program.tensors.size()) - 1};
  if (role == ir::Role::input) program.inputs.push_back(id);
  if (role == ir::Role::output) program.outputs.push_back(id);
  return id;
}

inline ir::ExprPtr sigmoid(const ir::ExprPtr& x) {
  const ir::ExprPtr one = ir::constant(x->dtype, 1);
  const ir::ExprPtr exp = ir::unary(ir::UnaryOp::exp, ir::unary(ir::UnaryOp::neg, x));
  return ir::binary(ir::BinaryOp::div, one, ir::binary(ir::BinaryOp::add, one, exp));
}

inline ir::ExprPtr mish(const ir::ExprPtr& x) {
  const ir::ExprPtr softplus = ir::unary(ir::UnaryOp::log1p, ir::unary(ir::UnaryOp::exp, x));
  return ir::binary(ir::BinaryOp::mul, x, ir::unary(ir::UnaryOp::tanh, softplus));
}

// The epilogue's value of a sum, given a load of the bias.
inline ir::ExprPtr apply(Epilogue epilogue, const ir::ExprPtr& sum, const ir::ExprPtr& bias) {
  const ir::ExprPtr x = ir::binary(ir::BinaryOp::add, sum, bias);
  const auto number = [&](double value) { return ir::constant(sum->dtype, value); };
  switch (epilogue) {
    case Epilogue::none:
      return sum;
    case Epilogue::both_outputs:
    case Epilogue::bias_leaky: {
      const ir::ExprPtr scaled = ir::binary(ir::BinaryOp::mul, x, number(2));
      return ir::select(ir::binary(ir::BinaryOp::gt, scaled, number(0)), scaled,
                        ir::binary(ir::BinaryOp::mul, scaled, number(0.1)));
    }
    case Epilogue::swish:
      return ir::binary(ir::BinaryOp::mul, ir::binary(ir::BinaryOp::mul, x, sigmoid(x)), number(2));
    case Epilogue::mish_twice:
      return mish(mish(x));
  }
  return sum;
}

}  // namespace example

// Inputs x (left), w (right) and, with an epilogue, bias[n]; output y, and the sums themselves as
// a first output z for both_outputs.
inline ExampleKernel make_example(const ProductExample& spec, const std::string& name) {
  using namespace example;  // tidy: allow(using-namespace) because the helpers are above
  ExampleKernel made;
  ir::Program& program = made.program;
  ir::FusedKernel& kernel = made.kernel;
  const bool batched = spec.batch > 0;
  const int m = batched ? 1 : 0, n = m + 1, k = n + 1;
  const auto shape = [&](int64_t rows, int64_t columns) {
    std::vector<int64_t> extents{rows, columns};
    if (batched) extents.insert(extents.begin(), spec.batch);
    return extents;
  };
  const auto indices = [&](int row, int column) {
    std::vector<ir::ExprPtr> list{ir::axis(row), ir::axis(column)};
    if (batched) list.insert(list.begin(), ir::axis(0));
    return list;
  };
  const ir::TensorId x = add_tensor(
      program, "x", spec.dtype,
      spec.left_transposed ? shape(spec.k, spec.m) : shape(spec.m, spec.k), ir::Role::input);
  const ir::TensorId w = add_tensor(
      program, "w", spec.dtype,
      spec.right_transposed ? shape(spec.n, spec.k) : shape(spec.k, spec.n), ir::Role::input);
  const bool plain = spec.epilogue == Epilogue::none;
  ir::TensorId bias;
  if (!plain) bias = add_tensor(program, "bias", spec.dtype, {spec.n}, ir::Role::input);
  const bool both = spec.epilogue == Epilogue::both_outputs;
  const ir::TensorId sums = plain ? ir::TensorId{}
                                  : add_tensor(program, "z", spec.dtype, shape(spec.m, spec.n),
                                               both ? ir::Role::output : ir::Role::intermediate);
  const ir::TensorId y =
      add_tensor(program, "y", spec.dtype, shape(spec.m, spec.n), ir::Role::output);

  kernel.name = name;
  kernel.skeleton = ir::Skeleton::contract;
  kernel.schedule = spec.schedule;
  if (batched) kernel.rows.push_back({"b", spec.batch});
  kernel.rows.push_back({"m", spec.m});
  kernel.rows.push_back({"n", spec.n});
  ir::ExprPtr left = ir::load(x, spec.dtype, spec.left_transposed ? indices(k, m) : indices(m, k));
  ir::ExprPtr right =
      ir::load(w, spec.dtype, spec.right_transposed ? indices(n, k) : indices(k, n));
  const ir::ExprPtr half = ir::constant(spec.dtype, 0.5);
  if (spec.prologue == Prologue::scale_left) left = ir::binary(ir::BinaryOp::mul, left, half);
  if (spec.prologue == Prologue::scale_right) right = ir::binary(ir::BinaryOp::mul, right, half);
  kernel.stages.push_back({.output = plain ? y : sums,
                           .inner = {{"k", spec.k}},
                           .reduce = ir::ReduceOp::sum,
                           .accumulator = spec.dtype,
                           .body = ir::binary(ir::BinaryOp::mul, left, right),
                           .store = indices(m, n),
                           .origin = "aten.mm.default"});
  kernel.reads = {x, w};
  kernel.writes = {y};
  if (!plain) {
    kernel.stages.push_back({.output = y,
                             .body = apply(spec.epilogue, ir::load(sums, spec.dtype, indices(m, n)),
                                           ir::load(bias, spec.dtype, {ir::axis(n)})),
                             .store = indices(m, n),
                             .origin = "an epilogue"});
    kernel.reads.push_back(bias);
    both ? kernel.writes.push_back(sums) : kernel.internals.push_back(sums);
  }
  return made;
}

}  // namespace ke::x86
