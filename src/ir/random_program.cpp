// SPDX-License-Identifier: Apache-2.0
//
// The generator of random programs. Shapes grow from a few inputs; reductions are remembered with
// the axes they kept, so that later maps can broadcast them back (softmax and norms look like
// that).
#include "ir/random_program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/assert.hpp"
#include "ir/scalar.hpp"

namespace ke::ir {
namespace {

using Shape = std::vector<int64_t>;

int64_t elements_of(const Shape& shape) {
  int64_t count = 1;
  for (int64_t extent : shape) count *= extent;
  return count;
}

class Generator {
 public:
  Generator(Rng& rng, const RandomProgramOptions& options) : rng_(rng), options_(options) {}

  Program run() {
    const int64_t inputs = 1 + rng_.below(3);
    for (int64_t i = 0; i < inputs; ++i) add_input(random_shape(), random_dtype());
    if (rng_.chance(0.3)) add_constant();
    const int64_t stages = 1 + rng_.below(options_.stages_max);
    for (int64_t i = 0; i < stages; ++i) add_stage();
    choose_outputs();
    return std::move(program_);
  }

 private:
  // A reduction's result, and the tensor's axes that it kept.
  struct Kept {
    TensorId result;
    TensorId source;
    std::vector<size_t> axes;
  };

  // --- Choices ----------------------------------------------------------------------------------
  int64_t random_extent() {
    if (options_.zero_sizes && rng_.chance(0.02)) return 0;
    static const std::vector<int64_t> kExtents{1, 2, 3, 4, 5, 7, 8, 11};
    return rng_.pick(kExtents);
  }
  Shape random_shape() {
    Shape shape(static_cast<size_t>(rng_.below(4)));
    for (int64_t& extent : shape) extent = random_extent();
    return shape;
  }
  DType random_dtype() {
    if (rng_.chance(0.6)) return DType::float32;
    std::vector<DType> others{DType::float64, DType::int64, DType::int32, DType::boolean,
                              DType::uint8,   DType::int16, DType::int8};
    if (options_.half_types) {
      others.push_back(DType::float16);
      others.push_back(DType::bfloat16);
    }
    return rng_.pick(others);
  }
  TensorId random_tensor() {
    const auto count = static_cast<int64_t>(program_.tensors.size());
    // Later tensors are likelier, so that chains grow.
    return {static_cast<int>(std::max(rng_.below(count), rng_.below(count)))};
  }
  const Tensor& tensor(TensorId id) const { return program_.tensor(id); }

  // --- Tensors ----------------------------------------------------------------------------------
  TensorId add_tensor(Tensor tensor) {
    tensor.name = fmt::format("t{}", program_.tensors.size());
    if (tensor.strides.empty()) tensor.strides = contiguous_strides(tensor.shape);
    program_.tensors.push_back(std::move(tensor));
    return {static_cast<int>(program_.tensors.size()) - 1};
  }

  TensorId add_input(const Shape& shape, DType dtype) {
    Tensor input{.name = {},
                 .dtype = dtype,
                 .shape = shape,
                 .strides = {},
                 .role = Role::input,
                 .values = {}};
    if (rng_.chance(0.25)) input.strides = random_strides(shape);
    program_.inputs.push_back(add_tensor(std::move(input)));
    return program_.inputs.back();
  }

  // A permuted, padded or broadcast layout.
  Shape random_strides(const Shape& shape) {
    std::vector<size_t> order(shape.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    rng_.shuffle(order);
    Shape strides(shape.size());
    int64_t step = rng_.chance(0.2) ? 2 : 1;
    for (size_t dimension : order) {
      strides[dimension] = rng_.chance(0.1) ? 0 : step;
      step *= std::max<int64_t>(shape[dimension], 1);
      if (rng_.chance(0.1)) step += 3;
    }
    return strides;
  }

  void add_constant() {
    const Shape shape(static_cast<size_t>(rng_.below(2)), 3);
    Tensor table{.name = {},
                 .dtype = random_dtype(),
                 .shape = shape,
                 .strides = {},
                 .role = Role::constant,
                 .values = {}};
    for (int64_t i = 0; i < elements_of(shape); ++i) {
      table.values.push_back(static_cast<double>(rng_.below(9) - 4));
    }
    add_tensor(std::move(table));
  }

  static std::vector<Axis> axes_named(const char* stem, const Shape& extents) {
    std::vector<Axis> axes;
    for (int64_t extent : extents) axes.push_back({fmt::format("{}{}", stem, axes.size()), extent});
    return axes;
  }

  TensorId emit(DType dtype, const Shape& parallel, const Shape& reduction, ReduceOp reduce,
                DType accumulator, ExprPtr body, std::string origin) {
    Stage stage;
    stage.parallel = axes_named("i", parallel);
    stage.reduction = axes_named("r", reduction);
    stage.reduce = reduce;
    stage.accumulator = accumulator;
    stage.body = std::move(body);
    stage.origin = std::move(origin);
    stage.output = add_tensor({.name = {},
                               .dtype = dtype,
                               .shape = parallel,
                               .strides = {},
                               .role = Role::intermediate,
                               .values = {}});
    program_.stages.push_back(std::move(stage));
    return program_.stages.back().output;
  }

  static std::vector<ExprPtr> identity(size_t rank) {
    std::vector<ExprPtr> indices;
    for (size_t i = 0; i < rank; ++i) indices.push_back(axis(static_cast<int>(i)));
    return indices;
  }

  ExprPtr load_of(TensorId id, std::vector<ExprPtr> indices) {
    return load(id, tensor(id).dtype, std::move(indices));
  }

  // --- Expressions ------------------------------------------------------------------------------
  // Something readable at every index of the shape (axes 0, 1, ...), of that dtype.
  ExprPtr leaf(const Shape& shape, DType dtype) {
    if (rng_.chance(0.12)) return cast(dtype, constant(DType::float32, rng_.normal()));
    if (rng_.chance(0.04) && !shape.empty()) {
      return cast(dtype, axis(static_cast<int>(rng_.below(static_cast<int64_t>(shape.size())))));
    }
    std::vector<ExprPtr> found;
    for (size_t i = 0; i < program_.tensors.size(); ++i) {
      const TensorId id{static_cast<int>(i)};
      if (const auto indices = broadcast(tensor(id).shape, shape)) {
        found.push_back(load_of(id, *indices));
      }
    }
    for (const Kept& kept : kept_) {
      if (tensor(kept.source).shape != shape) continue;
      std::vector<ExprPtr> indices;
      for (size_t a : kept.axes) indices.push_back(axis(static_cast<int>(a)));
      found.push_back(load_of(kept.result, indices));
      found.push_back(found.back());
    }
    if (found.empty()) return constant_int(dtype, 1);
    return cast(dtype, rng_.pick(found));
  }

  // Right-aligned broadcasting of `from` to `to`.
  static std::optional<std::vector<ExprPtr>> broadcast(const Shape& from, const Shape& to) {
    if (from.size() > to.size()) return std::nullopt;
    std::vector<ExprPtr> indices;
    for (size_t i = 0; i < from.size(); ++i) {
      const size_t target = to.size() - from.size() + i;
      if (from[i] != to[target] && from[i] != 1) return std::nullopt;
      indices.push_back(from[i] == 1 ? index_constant(0) : axis(static_cast<int>(target)));
    }
    return indices;
  }

  ExprPtr expression(const Shape& shape, DType dtype, int depth) {
    if (depth == 0 || rng_.chance(0.15)) return leaf(shape, dtype);
    const double kind = rng_.uniform();
    if (kind < 0.35) {
      const UnaryOp op = random_unary(dtype);
      if (accepts(op, dtype)) return cast(dtype, unary(op, expression(shape, dtype, depth - 1)));
    } else if (kind < 0.8) {
      const BinaryOp op = random_binary();
      if (accepts(op, dtype)) {
        const ExprPtr left = expression(shape, dtype, depth - 1);
        return cast(dtype, binary(op, left, expression(shape, dtype, depth - 1)));
      }
    } else if (kind < 0.9) {
      const ExprPtr condition = expression(shape, DType::boolean, depth - 1);
      const ExprPtr left = expression(shape, dtype, depth - 1);
      return select(condition, left, expression(shape, dtype, depth - 1));
    } else {
      return cast(dtype, expression(shape, random_dtype(), depth - 1));
    }
    return leaf(shape, dtype);
  }

  UnaryOp random_unary(DType dtype) {
    if (options_.unusual_functions) return static_cast<UnaryOp>(rng_.below(33));
    static const std::vector<UnaryOp> kUsual{UnaryOp::neg, UnaryOp::exp, UnaryOp::tanh};
    return is_floating(dtype) ? rng_.pick(kUsual) : UnaryOp::neg;
  }
  BinaryOp random_binary() {
    static const std::vector<BinaryOp> kUsual{BinaryOp::add, BinaryOp::sub, BinaryOp::mul,
                                              BinaryOp::maximum, BinaryOp::minimum};
    const bool unusual = options_.unusual_functions && rng_.chance(0.5);
    return unusual ? static_cast<BinaryOp>(rng_.below(26)) : rng_.pick(kUsual);
  }

  // --- Stages -----------------------------------------------------------------------------------
  void add_stage() {
    const double kind = rng_.uniform();
    if (kind < 0.45) return add_map();
    if (kind < 0.6) return add_view();
    if (kind < 0.8) return add_reduction();
    if (kind < 0.87 && options_.scans) return add_scan();
    add_contraction();
  }

  void add_map() {
    const Shape shape = tensor(random_tensor()).shape;
    const DType dtype = random_dtype();
    emit(dtype, shape, {}, ReduceOp::none, DType::float32, expression(shape, dtype, 3), "test.map");
  }

  // Moves elements about: the body is one load at other indices.
  void add_view() {
    const TensorId source = random_tensor();
    const Shape from = tensor(source).shape;
    const auto kind = rng_.below(4);
    if (kind == 0) return add_permutation(source, from);
    if (kind == 1) return add_reshape(source, from);
    if (kind == 2) return add_padding(source, from);
    add_gather(source, from);
  }

  void add_permutation(TensorId source, const Shape& from) {
    std::vector<size_t> order(from.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    rng_.shuffle(order);
    Shape shape;
    std::vector<ExprPtr> indices(from.size());
    for (size_t i = 0; i < order.size(); ++i) {
      shape.push_back(from[order[i]]);
      indices[order[i]] = axis(static_cast<int>(i));
    }
    if (!shape.empty() && rng_.chance(0.3)) {  // and flip one
      indices[order[0]] = binary(BinaryOp::sub, index_constant(shape[0] - 1), axis(0));
    }
    copy(source, shape, load_of(source, indices));
  }

  void add_reshape(TensorId source, const Shape& from) {
    const int64_t count = elements_of(from);
    Shape shape{count};
    for (int64_t factor : {2, 3, 5, 7}) {
      if (count > 0 && shape.back() % factor == 0 && rng_.chance(0.5)) {
        shape.back() /= factor;
        shape.insert(shape.begin() + rng_.below(static_cast<int64_t>(shape.size())), factor);
      }
    }
    ExprPtr flat = index_constant(0);
    for (size_t i = 0; i < shape.size(); ++i) {
      const ExprPtr step = index_constant(contiguous_strides(shape)[i]);
      flat = binary(BinaryOp::add, flat, binary(BinaryOp::mul, axis(static_cast<int>(i)), step));
    }
    std::vector<ExprPtr> indices;
    for (size_t i = 0; i < from.size(); ++i) {
      const ExprPtr step = index_constant(contiguous_strides(from)[i]);
      const ExprPtr above = binary(BinaryOp::floor_div, flat, step);
      indices.push_back(binary(BinaryOp::mod, above, index_constant(from[i])));
      if (rng_.chance(0.5)) indices.back() = simplify_index(indices.back(), shape);
    }
    copy(source, shape, load_of(source, indices));
  }

  void add_padding(TensorId source, const Shape& from) {
    if (from.empty()) return add_map();
    Shape shape = from;
    shape[0] += 2;
    std::vector<ExprPtr> indices = identity(from.size());
    indices[0] = binary(BinaryOp::sub, axis(0), index_constant(1));
    const ExprPtr inside =
        binary(BinaryOp::logical_and, binary(BinaryOp::ge, indices[0], index_constant(0)),
               binary(BinaryOp::lt, indices[0], index_constant(from[0])));
    copy(source, shape,
         select(inside, load_of(source, indices), constant_int(tensor(source).dtype, 1)));
  }

  void add_gather(TensorId source, const Shape& from) {
    const TensorId picker = random_tensor();
    if (from.empty() || from[0] == 0 || is_floating(tensor(picker).dtype)) return add_map();
    Shape shape = tensor(picker).shape;
    std::vector<ExprPtr> indices{binary(BinaryOp::mod,
                                        cast(DType::int64, load_of(picker, identity(shape.size()))),
                                        index_constant(from[0]))};
    for (size_t i = 1; i < from.size(); ++i) {
      indices.push_back(axis(static_cast<int>(shape.size())));
      shape.push_back(from[i]);
    }
    copy(source, shape, load_of(source, indices));
  }

  void copy(TensorId source, const Shape& shape, const ExprPtr& body) {
    if (elements_of(shape) > options_.iterations_max || shape.size() > 4) return add_map();
    emit(tensor(source).dtype, shape, {}, ReduceOp::none, DType::float32, body, "test.view");
  }

  void add_reduction() {
    const TensorId source = random_tensor();
    const Shape from = tensor(source).shape;
    if (from.empty()) return add_map();
    std::vector<size_t> kept;
    std::vector<ExprPtr> to_axis(from.size());
    Shape parallel, reduction;
    const auto forced = static_cast<size_t>(rng_.below(static_cast<int64_t>(from.size())));
    for (size_t i = 0; i < from.size(); ++i) {
      if (i == forced || rng_.chance(0.3)) continue;
      to_axis[i] = axis(static_cast<int>(parallel.size()));
      parallel.push_back(from[i]);
      kept.push_back(i);
    }
    for (size_t i = 0; i < from.size(); ++i) {
      if (to_axis[i]) continue;
      to_axis[i] = axis(static_cast<int>(parallel.size() + reduction.size()));
      reduction.push_back(from[i]);
    }
    auto reduce = static_cast<ReduceOp>(1 + rng_.below(8));
    if (elements_of(reduction) == 0) reduce = ReduceOp::sum;
    const DType body_dtype = reduction_dtype(reduce, tensor(source).dtype);
    const ExprPtr body = substitute_axes(binary_or_leaf(source, from, body_dtype), to_axis);
    const bool position = reduce == ReduceOp::argmax || reduce == ReduceOp::argmin;
    const DType output = position ? DType::int64 : body_dtype;
    const TensorId result = emit(output, parallel, reduction, reduce, body_dtype, body,
                                 fmt::format("test.{}", enum_name(reduce)));
    kept_.push_back({result, source, kept});
  }

  // Along any axis, sometimes backwards: flipped, scanned, and flipped back.
  void add_scan() {
    const TensorId source = random_tensor();
    const Shape shape = tensor(source).shape;
    if (shape.empty()) return add_map();
    const auto reduce = static_cast<ReduceOp>(1 + rng_.below(4));
    const DType dtype = reduction_dtype(reduce, tensor(source).dtype);
    const auto along = static_cast<size_t>(rng_.below(static_cast<int64_t>(shape.size())));
    std::vector<ExprPtr> indices(shape.size());
    if (rng_.chance(0.4)) {
      indices[along] = binary(BinaryOp::sub, index_constant(shape[along] - 1),
                              axis(static_cast<int>(along)));
    }
    const ExprPtr body = substitute_axes(binary_or_leaf(source, shape, dtype), indices);
    const TensorId result =
        emit(dtype, shape, {}, reduce, dtype, body, fmt::format("test.scan_{}", enum_name(reduce)));
    program_.stages.back().scan = static_cast<int>(along);
    if (!indices[along]) return;
    std::vector<ExprPtr> back = identity(shape.size());
    back[along] = indices[along];
    copy(result, shape, load_of(result, back));
  }

  DType reduction_dtype(ReduceOp reduce, DType source) {
    if (reduce == ReduceOp::any || reduce == ReduceOp::all) return DType::boolean;
    const bool sum = reduce == ReduceOp::sum || reduce == ReduceOp::product;
    if (!sum) return source;
    if (!is_floating(source)) return DType::int64;
    return source == DType::float64 ? source : DType::float32;
  }

  // The source itself, or a map of it and what broadcasts to it.
  ExprPtr binary_or_leaf(TensorId source, const Shape& shape, DType dtype) {
    const ExprPtr own = cast(dtype, load_of(source, identity(shape.size())));
    if (rng_.chance(0.4)) return own;
    const ExprPtr other = expression(shape, dtype, 1);
    return dtype == DType::boolean ? binary(BinaryOp::logical_xor, own, other)
                                   : binary(BinaryOp::sub, own, other);
  }

  // Contracts the last dimension of a tensor with a fresh operand, perhaps over a shared batch.
  void add_contraction() {
    const TensorId left = random_tensor();
    const Shape from = tensor(left).shape;
    if (from.empty() || from.size() > 3) return add_reduction();
    const DType dtype = tensor(left).dtype == DType::float64 ? DType::float64
                        : is_floating(tensor(left).dtype)    ? DType::float32
                                                             : DType::int64;
    const bool batched = from.size() == 3 && rng_.chance(0.5);
    const bool transposed = rng_.chance(0.5);
    const int64_t n = 1 + rng_.below(8), k = from.back();
    if (elements_of(from) * n > options_.iterations_max) return add_reduction();
    Shape shape = transposed ? Shape{n, k} : Shape{k, n};
    if (batched) shape.insert(shape.begin(), from[0]);
    const TensorId right = add_input(shape, dtype);
    Shape parallel(from.begin(), from.end() - 1);
    parallel.push_back(n);
    const ExprPtr row = axis(static_cast<int>(parallel.size()) - 1);
    const ExprPtr inner = axis(static_cast<int>(parallel.size()));
    std::vector<ExprPtr> left_indices = identity(from.size());
    left_indices.back() = inner;
    std::vector<ExprPtr> right_indices =
        transposed ? std::vector<ExprPtr>{row, inner} : std::vector<ExprPtr>{inner, row};
    if (batched) right_indices.insert(right_indices.begin(), axis(0));
    ExprPtr a = cast(dtype, load_of(left, left_indices));
    if (rng_.chance(0.25)) a = unary(UnaryOp::neg, a);
    const ExprPtr b = load_of(right, right_indices);
    const ExprPtr body =
        rng_.chance(0.5) ? binary(BinaryOp::mul, a, b) : binary(BinaryOp::mul, b, a);
    emit(dtype, parallel, {k}, ReduceOp::sum, dtype, body, "test.mm");
  }

  void choose_outputs() {
    std::vector<TensorId> written;
    for (const Stage& stage : program_.stages) written.push_back(stage.output);
    for (size_t i = 0; i < written.size(); ++i) {
      if (i + 1 != written.size() && !rng_.chance(0.25)) continue;
      program_.tensors[static_cast<size_t>(written[i].index)].role = Role::output;
      program_.outputs.push_back(written[i]);
    }
    if (rng_.chance(0.1)) program_.outputs.push_back(program_.outputs.front());
    if (rng_.chance(0.1)) program_.outputs.push_back(program_.inputs.front());
  }

  Rng& rng_;
  const RandomProgramOptions& options_;
  Program program_;
  std::vector<Kept> kept_;
};

double random_float(Rng& rng, bool specials) {
  if (specials && rng.chance(0.1)) {
    static const std::vector<double> kSpecials{std::numeric_limits<double>::quiet_NaN(),
                                               std::numeric_limits<double>::infinity(),
                                               -std::numeric_limits<double>::infinity(),
                                               0.0,
                                               -0.0,
                                               1e-40,
                                               1e30};
    return rng.pick(kSpecials);
  }
  return rng.normal();
}

template <class T>
void put(TensorBytes& bytes, size_t position, T value) {
  std::memcpy(bytes.data() + position * sizeof(T), &value, sizeof(T));
}

void put_random(Rng& rng, DType dtype, bool specials, TensorBytes& bytes, size_t position) {
  if (is_floating(dtype)) {
    const double value = random_float(rng, specials);
    const auto narrow = static_cast<float>(value);
    if (dtype == DType::float64) return put(bytes, position, value);
    if (dtype == DType::float32) return put(bytes, position, narrow);
    return put(bytes, position, dtype == DType::float16 ? half_bits(narrow) : bfloat_bits(narrow));
  }
  const int64_t value = rng.below(17) - 8;
  switch (bytes_of(dtype)) {
    case 8:
      return put(bytes, position, value);
    case 4:
      return put(bytes, position, static_cast<int32_t>(value));
    case 2:
      return put(bytes, position, static_cast<int16_t>(value));
    default:
      break;
  }
  const bool boolean = dtype == DType::boolean;
  put(bytes, position, static_cast<uint8_t>(boolean ? value & 1 : value));
}

}  // namespace

Program random_program(Rng& rng, const RandomProgramOptions& options) {
  return Generator(rng, options).run();
}

std::vector<TensorBytes> random_inputs(const Program& program, Rng& rng, bool specials) {
  std::vector<TensorBytes> inputs;
  for (TensorId id : program.inputs) {
    const Tensor& tensor = program.tensor(id);
    TensorBytes bytes(static_cast<size_t>(span_bytes(tensor)));
    const size_t count = bytes.size() / static_cast<size_t>(bytes_of(tensor.dtype));
    for (size_t i = 0; i < count; ++i) put_random(rng, tensor.dtype, specials, bytes, i);
    inputs.push_back(std::move(bytes));
  }
  return inputs;
}

}  // namespace ke::ir
