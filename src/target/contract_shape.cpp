// SPDX-License-Identifier: Apache-2.0
//
// Which axis plays which part is read off the two factors: m is in the left one alone, n in the
// right one alone, what is in both (or neither) is a batch.
#include "target/contract_shape.hpp"

#include <algorithm>
#include <utility>

#include "target/c_printer.hpp"

namespace ke::target {
namespace {

using ir::Axis;
using ir::ExprPtr;

struct Roles {
  std::vector<int> batch, m, n, k;  // axis positions of the kernel
};

int64_t extent_of(const std::vector<Axis>& axes, const std::vector<int>& positions) {
  int64_t product = 1;
  for (int position : positions) product *= axes[static_cast<size_t>(position)].extent;
  return product;
}

Roles roles_of(const ExprPtr& left, const ExprPtr& right, int rows, int inner) {
  Roles roles;
  for (int axis = 0; axis < rows; ++axis) {
    const bool in_left = depends_on_axis(*left, axis);
    const bool in_right = depends_on_axis(*right, axis);
    (in_left == in_right ? roles.batch : in_left ? roles.m : roles.n).push_back(axis);
  }
  for (int axis = rows; axis < rows + inner; ++axis) roles.k.push_back(axis);
  return roles;
}

// replacements[p] for each position: its value in terms of one flat axis, row-major.
void flatten(const std::vector<Axis>& axes, const std::vector<int>& positions, int flat_axis,
             std::vector<ExprPtr>& replacements) {
  int64_t below = 1;
  const ExprPtr flat = ir::axis(flat_axis);
  for (size_t i = positions.size(); i-- > 0;) {
    const int64_t extent = axes[static_cast<size_t>(positions[i])].extent;
    ExprPtr value = flat;
    if (below > 1) {
      value = ir::binary(ir::BinaryOp::floor_div, value, ir::index_constant(below));
    }
    if (i > 0) value = ir::binary(ir::BinaryOp::mod, value, ir::index_constant(extent));
    replacements[static_cast<size_t>(positions[i])] = value;
    below *= std::max<int64_t>(extent, 1);
  }
}

std::optional<StridedOperand> strided(const ir::Program& program, const ContractShape& shape,
                                      const ir::Expr& value, int row_axis) {
  if (value.kind != ir::Expr::Kind::load || value.dtype != shape.dtype) return std::nullopt;
  std::vector<int64_t> extents;
  for (const Axis& axis : shape.batch) extents.push_back(axis.extent);
  extents.insert(extents.end(), {shape.m, shape.n, shape.k});
  const ExprPtr offset = element_offset(program.tensor(value.tensor), value.operands, extents);
  ir::Affine affine;
  if (!ir::as_affine(*offset, static_cast<int>(extents.size()), affine)) return std::nullopt;
  StridedOperand operand{.tensor = value.tensor, .base = affine.base};
  const auto coefficient = [&](int axis) { return affine.coefficients[static_cast<size_t>(axis)]; };
  for (int axis = 0; axis < shape.m_axis(); ++axis) operand.batch.push_back(coefficient(axis));
  operand.row = coefficient(row_axis);
  operand.depth = coefficient(shape.k_axis());
  return operand;
}

Error refusal(std::string why) { return Error{Errc::unavailable, std::move(why)}; }

// The two factors of the contraction, the one that varies along the last row axis second.
Result<std::pair<ExprPtr, ExprPtr>> factors(const ir::FusedKernel& kernel) {
  if (kernel.stages.empty()) return refusal(kernel.name + " has no stages");
  const ir::FusedStage& stage = kernel.stages.front();
  if (stage.reduce != ir::ReduceOp::sum) {
    return refusal(kernel.name + " is not a sum, so it is no contraction");
  }
  if (stage.accumulator != ir::DType::float32 && stage.accumulator != ir::DType::float64) {
    return refusal(kernel.name + " accumulates in " + std::string(enum_name(stage.accumulator)) +
                   "; contractions are printed for float32 and float64");
  }
  const ir::Expr& body = *stage.body;
  if (body.kind != ir::Expr::Kind::binary || body.binary != ir::BinaryOp::mul ||
      body.dtype != stage.accumulator) {
    return refusal(kernel.name + " does not sum a product in its accumulator's type");
  }
  std::pair<ExprPtr, ExprPtr> found{body.operands[0], body.operands[1]};
  const int rows = static_cast<int>(kernel.rows.size());
  for (int axis = rows; axis-- > 0;) {
    const bool in_left = depends_on_axis(*found.first, axis);
    if (in_left == depends_on_axis(*found.second, axis)) continue;
    if (in_left) std::swap(found.first, found.second);
    break;
  }
  return found;
}

}  // namespace

Result<ContractShape> contract_shape(const ir::Program& program, const ir::FusedKernel& kernel) {
  auto [left, right] = TRY(factors(kernel));
  const int rows = static_cast<int>(kernel.rows.size());
  const std::vector<Axis>& inner = kernel.stages.front().inner;
  const Roles roles = roles_of(left, right, rows, static_cast<int>(inner.size()));

  std::vector<Axis> axes = kernel.rows;
  axes.insert(axes.end(), inner.begin(), inner.end());
  ContractShape shape;
  shape.dtype = kernel.stages.front().accumulator;
  shape.m = extent_of(axes, roles.m);
  shape.n = extent_of(axes, roles.n);
  shape.k = extent_of(axes, roles.k);
  std::vector<ExprPtr> replacements(axes.size());
  for (int position : roles.batch) {
    replacements[static_cast<size_t>(position)] = ir::axis(static_cast<int>(shape.batch.size()));
    shape.batch.push_back(axes[static_cast<size_t>(position)]);
  }
  flatten(axes, roles.m, shape.m_axis(), replacements);
  flatten(axes, roles.n, shape.n_axis(), replacements);
  flatten(axes, roles.k, shape.k_axis(), replacements);

  std::vector<int64_t> extents;
  for (const Axis& axis : shape.batch) extents.push_back(axis.extent);
  extents.insert(extents.end(), {shape.m, shape.n, shape.k});
  const auto canonical = [&](const ExprPtr& expr) {
    return ir::simplify_index(ir::substitute_axes(expr, replacements), extents);
  };
  for (const ir::FusedStage& stage : kernel.stages) {
    if (&stage != &kernel.stages.front() && !stage.inner.empty()) {
      return refusal(kernel.name + " has a stage with inner axes after its contraction");
    }
    shape.stages.push_back(stage);
    shape.stages.back().body = canonical(stage.body);
    for (ExprPtr& index : shape.stages.back().store) index = canonical(index);
  }
  shape.a.value = canonical(left);
  shape.b.value = canonical(right);
  shape.a.strided = strided(program, shape, *shape.a.value, shape.m_axis());
  shape.b.strided = strided(program, shape, *shape.b.value, shape.n_axis());
  return shape;
}

}  // namespace ke::target
