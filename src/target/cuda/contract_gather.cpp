// SPDX-License-Identifier: Apache-2.0
#include "target/cuda/contract_gather.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "target/c_printer.hpp"

namespace ke::cuda {
namespace {

using ir::BinaryOp;
using ir::DType;
using ir::Expr;
using ir::ExprPtr;
using ir::index_constant;
using target::ContractShape;
using target::round_up;

bool is_zero(const Expr& value) {
  return value.kind == Expr::Kind::constant && is_floating(value.dtype) && value.float_value == 0;
}

// A factor as `select(guard, value, 0)`; the guard is null where there is none.
struct Guarded {
  ExprPtr guard, value;
};
Guarded guarded(const ExprPtr& factor) {
  if (factor->kind == Expr::Kind::select && is_zero(*factor->operands[2])) {
    return {factor->operands[0], factor->operands[1]};
  }
  if (factor->kind == Expr::Kind::cast && factor->dtype == DType::float32) {
    Guarded inner = guarded(factor->operands[0]);
    return {inner.guard, ir::cast(DType::float32, inner.value)};
  }
  return {nullptr, factor};
}

// The load of the value that has the most indices.
const Expr* main_load(const ExprPtr& value) {
  const Expr* most = nullptr;
  walk(value, [&](const Expr& expr) {
    if (expr.kind != Expr::Kind::load) return;
    if (most == nullptr || expr.operands.size() > most->operands.size()) most = &expr;
  });
  return most;
}

// The dimension that the axis walks, one element a step, in pieces that begin at multiples of
// eight; and no other does, nor the guard.
std::optional<size_t> channel_dimension(const Guarded& factor, const Expr& load, int axis,
                                        int axis_count) {
  if (factor.guard && target::depends_on_axis(*factor.guard, axis)) return std::nullopt;
  std::optional<size_t> found;
  for (size_t d = 0; d < load.operands.size(); ++d) {
    const Expr& index = *load.operands[d];
    if (!target::depends_on_axis(index, axis)) continue;
    ir::Affine affine;
    if (found || !ir::as_affine(index, axis_count, affine)) return std::nullopt;
    const auto at = static_cast<size_t>(axis);
    bool fits = affine.coefficients[at] == 1 && affine.base % kPieceElements == 0;
    affine.coefficients[at] = 0;
    for (const int64_t c : affine.coefficients) fits = fits && c % kPieceElements == 0;
    if (!fits) return std::nullopt;
    found = d;
  }
  return found;
}

// The value with every index of the main load as an axis of its own: what there is to pack. Null
// when it depends on more than the element.
ExprPtr over_dimensions(const ExprPtr& value, const Expr& load) {
  if (value->kind == Expr::Kind::axis) return nullptr;
  if (value->operands.empty()) return value;
  std::vector<ExprPtr> operands;
  for (const ExprPtr& operand : value->operands) {
    ExprPtr made;
    for (size_t d = 0; value->kind == Expr::Kind::load && d < load.operands.size(); ++d) {
      if (!made && same(*operand, *load.operands[d])) made = ir::axis(static_cast<int>(d));
    }
    if (!made) made = over_dimensions(operand, load);
    if (!made) return nullptr;
    operands.push_back(std::move(made));
  }
  return with_operands(*value, std::move(operands));
}

// The dimensions of a gathered tensor by their part.
struct Dimensions {
  std::optional<size_t> image;
  size_t channel = 0;
  std::vector<size_t> pixel;
};

// One flat axis for some dimensions, row-major.
void spread(const ir::Tensor& tensor, const std::vector<size_t>& dimensions, int flat_axis,
            std::vector<ExprPtr>& replacements) {
  int64_t below = 1;
  for (size_t i = dimensions.size(); i-- > 0;) {
    const int64_t extent = tensor.shape[dimensions[i]];
    ExprPtr value = ir::axis(flat_axis);
    if (below > 1) value = ir::binary(BinaryOp::floor_div, value, index_constant(below));
    if (i > 0) value = ir::binary(BinaryOp::mod, value, index_constant(extent));
    replacements[dimensions[i]] = value;
    below *= extent;
  }
}

ExprPtr plus(const ExprPtr& a, const ExprPtr& b) { return ir::binary(BinaryOp::add, a, b); }
ExprPtr times(const ExprPtr& a, int64_t b) {
  return ir::binary(BinaryOp::mul, a, index_constant(b));
}

class GatherMaker {
 public:
  GatherMaker(const ir::Program& program, const ContractShape& shape, bool left)
      : program_(program), shape_(shape), left_(left) {}

  // `padded`: the last condition of the guard says which of the channels exist.
  std::optional<Gather> make(bool padded, int64_t channels) {
    Guarded factor = guarded(left_ ? shape_.a.value : shape_.b.value);
    if (padded) {
      const ExprPtr whole = factor.guard;
      factor.guard = whole->binary == BinaryOp::logical_and ? whole->operands[0] : nullptr;
    }
    load_ = main_load(factor.value);
    const ExprPtr element = over_dimensions(factor.value, *load_);
    if (!element) return std::nullopt;
    const ir::Tensor& tensor = program_.tensor(load_->tensor);
    if (shape_.k % kPieceElements != 0 || !find_parts(tensor, factor.guard)) return std::nullopt;
    Gather gather{.tensor = load_->tensor};
    gather.channels = tensor.shape[parts_.channel];
    gather.padded_channels = round_up(gather.channels, kPieceElements);
    if (padded && gather.channels != channels) return std::nullopt;  // groups of odd sizes
    if (parts_.image) gather.images = tensor.shape[*parts_.image];
    for (const size_t d : parts_.pixel) gather.pixels *= tensor.shape[d];
    gather.along_channels = tensor.strides[parts_.channel] == 1;
    gather.in_place = lies_in_place(tensor, factor.value);
    describe_elements(gather, tensor, element);
    describe_pieces(gather, tensor, factor.guard);
    return gather;
  }

 private:
  // Every dimension has a part, and only the channel's differs within a piece.
  bool find_parts(const ir::Tensor& tensor, const ExprPtr& guard) {
    bool found = false;
    for (size_t d = 0; d < tensor.shape.size(); ++d) {
      const ExprPtr& index = load_->operands[d];
      if (!found && is_channel(index)) {
        parts_.channel = d;
        found = true;
      } else if (!is_same_in_piece(index)) {
        return false;
      } else if (!target::depends_on_axis(*index, shape_.k_axis()) && !parts_.image &&
                 tensor.shape[d] > 1) {
        parts_.image = d;
      } else {
        parts_.pixel.push_back(d);
      }
    }
    return found && (!guard || is_same_in_piece(guard));
  }

  // Whether it is one more with each of k, from a multiple of eight on.
  bool is_channel(const ExprPtr& index) const {
    const ir::Tensor line{.shape = {1}, .strides = {1}};
    const target::Address address = target::address_of(line, {index});
    int walked = 0;
    for (const target::Address::Term& term : address.terms) {
      const Expr& factor = *term.factor;
      const bool rest = factor.kind == Expr::Kind::binary && factor.binary == BinaryOp::mod &&
                        factor.operands[1]->kind == Expr::Kind::constant &&
                        factor.operands[1]->int_value % kPieceElements == 0;
      const Expr& walks = rest ? *factor.operands[0] : factor;
      if (walks.kind == Expr::Kind::axis && walks.axis == shape_.k_axis()) {
        walked += term.coefficient == 1 ? 1 : 2;
      } else if (term.coefficient % kPieceElements != 0 ||
                 target::depends_on_axis(factor, shape_.k_axis())) {
        return false;
      }
    }
    return walked == 1 && address.base % kPieceElements == 0;
  }

  ExprPtr in_piece(const ExprPtr& expr, int64_t at) const {
    std::vector<ExprPtr> replacements(static_cast<size_t>(shape_.k_axis() + 1));
    replacements.back() =
        plus(times(ir::axis(shape_.k_axis()), kPieceElements), index_constant(at));
    return ir::simplify_index(substitute_axes(expr, replacements), piece_extents());
  }

  bool is_same_in_piece(const ExprPtr& expr) const {
    const ExprPtr first = in_piece(expr, 0);
    for (int64_t at = 1; at < kPieceElements; ++at) {
      if (!same(*in_piece(expr, at), *first)) return false;
    }
    return true;
  }

  std::vector<int64_t> piece_extents() const {
    std::vector<int64_t> extents;
    for (const ir::Axis& axis : shape_.batch) extents.push_back(axis.extent);
    extents.insert(extents.end(), {shape_.m, shape_.n, shape_.k / kPieceElements});
    return extents;
  }

  bool lies_in_place(const ir::Tensor& tensor, const ExprPtr& value) const {
    const bool plain = value->kind == Expr::Kind::cast && &*value->operands[0] == load_;
    if (!plain || bytes_of(tensor.dtype) != 2 || tensor.role == ir::Role::constant) return false;
    for (size_t d = 0; d < tensor.shape.size(); ++d) {
      const int64_t stride = tensor.strides[d];
      if (d == parts_.channel ? stride != 1 : stride % kPieceElements != 0) return false;
    }
    return tensor.shape[parts_.channel] % kPieceElements == 0;
  }

  void describe_elements(Gather& gather, const ir::Tensor& tensor, const ExprPtr& element) const {
    std::vector<ExprPtr> replacements(tensor.shape.size());
    if (parts_.image) replacements[*parts_.image] = ir::axis(0);
    replacements[parts_.channel] = ir::axis(2);
    spread(tensor, parts_.pixel, 1, replacements);
    gather.packed = ir::simplify_index(substitute_axes(element, replacements),
                                       {gather.images, gather.pixels, gather.channels});
    std::vector<size_t> rest = parts_.pixel;
    rest.push_back(parts_.channel);
    std::ranges::sort(rest);
    std::ranges::stable_sort(rest, std::ranges::greater(),
                             [&](size_t d) { return tensor.strides[d]; });
    spread(tensor, rest, 1, replacements);
    gather.flat = ir::simplify_index(substitute_axes(element, replacements),
                                     {gather.images, gather.pixels * gather.channels});
  }

  void describe_pieces(Gather& gather, const ir::Tensor& tensor, const ExprPtr& guard) const {
    const std::vector<ExprPtr>& at = load_->operands;
    gather.image = parts_.image ? at[*parts_.image] : index_constant(0);
    const std::vector<int64_t> extents = piece_extents();
    const auto in_pieces = [&](const ExprPtr& expr) { return in_piece(expr, 0); };
    const auto divided = [&](const ExprPtr& expr) {
      return ir::simplify_index(
          ir::binary(BinaryOp::floor_div, expr, index_constant(kPieceElements)), extents);
    };
    if (guard) gather.inside = in_pieces(guard);
    ExprPtr place = index_constant(0);
    if (gather.in_place) {
      for (size_t d = 0; d < at.size(); ++d) {
        const bool channel = d == parts_.channel;
        const ExprPtr index = channel ? divided(in_pieces(at[d])) : in_pieces(at[d]);
        place = plus(place, times(index, channel ? 1 : tensor.strides[d] / kPieceElements));
      }
    } else {
      place = gather.image;
      for (const size_t d : parts_.pixel) {
        place = plus(times(place, tensor.shape[d]), in_pieces(at[d]));
      }
      place = plus(times(place, gather.padded_channels / kPieceElements),
                   divided(in_pieces(at[parts_.channel])));
    }
    gather.piece = ir::simplify_index(place, extents);
  }

  const ir::Program& program_;
  const ContractShape& shape_;
  bool left_;
  const Expr* load_ = nullptr;
  Dimensions parts_;
};

// The kernel with one inner axis last and padded to whole pieces.
struct Reordered {
  ir::FusedKernel kernel;
  bool padded = false;
  int64_t channels = 0;
};

Reordered with_channel_last(const ir::FusedKernel& kernel, size_t inner) {
  Reordered result{kernel};
  ir::FusedStage& stage = result.kernel.stages.front();
  const int rows = static_cast<int>(kernel.rows.size());
  std::vector<ir::Axis>& axes = stage.inner;
  std::vector<ExprPtr> replacements(static_cast<size_t>(rows) + axes.size());
  std::rotate(axes.begin() + static_cast<std::ptrdiff_t>(inner),
              axes.begin() + static_cast<std::ptrdiff_t>(inner) + 1, axes.end());
  for (size_t i = 0; i < axes.size(); ++i) {
    const size_t to = i == inner ? axes.size() - 1 : i > inner ? i - 1 : i;
    replacements[static_cast<size_t>(rows) + i] = ir::axis(rows + static_cast<int>(to));
  }
  stage.body = substitute_axes(stage.body, replacements);
  result.channels = axes.back().extent;
  result.padded = result.channels % kPieceElements != 0;
  if (!result.padded) return result;
  axes.back().extent = round_up(result.channels, kPieceElements);
  const ExprPtr exists =
      ir::binary(BinaryOp::lt, ir::axis(rows + static_cast<int>(axes.size()) - 1),
                 index_constant(result.channels));
  const auto padded = [&](const ExprPtr& factor) {
    const Guarded parts = guarded(factor);
    const ExprPtr guard =
        parts.guard ? ir::binary(BinaryOp::logical_and, parts.guard, exists) : exists;
    return ir::select(guard, parts.value, ir::constant(parts.value->dtype, 0));
  };
  stage.body =
      ir::binary(BinaryOp::mul, padded(stage.body->operands[0]), padded(stage.body->operands[1]));
  return result;
}

// Whether gathering saves something: packing altogether, or most of what tiles would repeat.
bool pays(const Gather& gather, const ContractShape& shape, bool left) {
  const int64_t tiled = shape.batches() * (left ? shape.m : shape.n) * shape.k;
  return gather.in_place || 2 * gather.packed_elements() <= tiled;
}

// The inner axes along which a factor might be gathered, the longest first.
std::vector<size_t> channel_axes(const ir::FusedKernel& kernel) {
  const ir::FusedStage& stage = kernel.stages.front();
  const int rows = static_cast<int>(kernel.rows.size());
  const int count = rows + static_cast<int>(stage.inner.size());
  std::vector<size_t> found;
  for (size_t i = 0; i < stage.inner.size(); ++i) {
    const int axis = rows + static_cast<int>(i);
    const bool any = std::ranges::any_of(stage.body->operands, [&](const ExprPtr& operand) {
      const Guarded factor = guarded(operand);
      const Expr* load = main_load(factor.value);
      return load != nullptr && channel_dimension(factor, *load, axis, count);
    });
    if (any) found.push_back(i);
  }
  std::ranges::stable_sort(found, std::ranges::greater(),
                           [&](size_t i) { return stage.inner[i].extent; });
  return found;
}

// The contraction with that axis as its channels.
std::optional<TensorShape> gathered_along(const ir::Program& program, const ir::FusedKernel& kernel,
                                          size_t inner) {
  const Reordered reordered = with_channel_last(kernel, inner);
  auto canonical = target::contract_shape(program, reordered.kernel);
  if (!canonical) return std::nullopt;
  TensorShape result{std::move(*canonical), {}};
  for (const bool left : {true, false}) {
    const ExprPtr& value = left ? result.shape.a.value : result.shape.b.value;
    if (main_load(guarded(value).value) == nullptr) continue;
    auto gather =
        GatherMaker(program, result.shape, left).make(reordered.padded, reordered.channels);
    if (gather && pays(*gather, result.shape, left)) {
      result.gathers[left ? 0 : 1] = std::move(gather);
    }
  }
  if (!result.gathers[0] && !result.gathers[1]) return std::nullopt;
  return result;
}

}  // namespace

DType half_type(const Expr& value) {
  if (value.kind == Expr::Kind::cast) return value.operands[0]->dtype;
  if (value.kind != Expr::Kind::select) return value.dtype;  // padding chooses zero
  if (is_zero(*value.operands[2])) return half_type(*value.operands[1]);
  return is_zero(*value.operands[1]) ? half_type(*value.operands[2]) : value.dtype;
}

TensorShape tensor_shape(const ir::Program& program, const ir::FusedKernel& kernel,
                         const ContractShape& shape) {
  if (!shape.is_empty() && shape.k > 0) {
    for (const size_t inner : channel_axes(kernel)) {
      if (auto gathered = gathered_along(program, kernel, inner)) return std::move(*gathered);
    }
  }
  return {shape, {}};
}

}  // namespace ke::cuda
