// SPDX-License-Identifier: Apache-2.0
#include "target/access.hpp"

#include <algorithm>
#include <unordered_set>

namespace ke::target {
namespace {

using ir::BinaryOp;
using ir::Expr;
using ir::UnaryOp;

double weight_of(UnaryOp op) {
  switch (op) {
    case UnaryOp::exp:
    case UnaryOp::exp2:
    case UnaryOp::expm1:
      return 16;
    case UnaryOp::log:
    case UnaryOp::log2:
    case UnaryOp::log10:
    case UnaryOp::log1p:
      return 24;
    case UnaryOp::tanh:
    case UnaryOp::erf:
      return 40;
    case UnaryOp::sin:
    case UnaryOp::cos:
      return 30;
    case UnaryOp::sqrt:
    case UnaryOp::rsqrt:
      return 8;
    case UnaryOp::tan:
    case UnaryOp::asin:
    case UnaryOp::acos:
    case UnaryOp::atan:
    case UnaryOp::sinh:
    case UnaryOp::cosh:
    case UnaryOp::asinh:
    case UnaryOp::acosh:
    case UnaryOp::atanh:
      return 150;
    case UnaryOp::neg:
    case UnaryOp::abs:
    case UnaryOp::floor:
    case UnaryOp::ceil:
    case UnaryOp::trunc:
    case UnaryOp::round:
    case UnaryOp::sign:
    case UnaryOp::logical_not:
    case UnaryOp::bit_not:
    case UnaryOp::is_nan:
    case UnaryOp::is_inf:
      return 1;
  }
  return 1;
}

double weight_of(BinaryOp op) {
  if (op == BinaryOp::div) return 6;
  if (op == BinaryOp::pow || op == BinaryOp::atan2 || op == BinaryOp::fmod) return 120;
  if (op == BinaryOp::mod || op == BinaryOp::floor_div) return 40;
  return 1;
}

double count_operations(const Expr& expr, std::unordered_set<const Expr*>& seen) {
  if (!seen.insert(&expr).second) return 0;
  double count = 0;
  if (expr.kind == Expr::Kind::unary) count = weight_of(expr.unary);
  if (expr.kind == Expr::Kind::binary) count = weight_of(expr.binary);
  if (expr.kind == Expr::Kind::select || expr.kind == Expr::Kind::cast) count = 1;
  if (expr.kind == Expr::Kind::load) return 1;  // indices are mostly hoisted
  for (const ir::ExprPtr& operand : expr.operands) count += count_operations(*operand, seen);
  return count;
}

void collect_loads(const ir::Program& program, const ir::ExprPtr& expr,
                   const std::vector<ir::TensorId>& held, std::unordered_set<const Expr*>& seen,
                   std::vector<Access>& result) {
  if (!seen.insert(expr.get()).second) return;
  if (expr->kind == Expr::Kind::load &&
      std::find(held.begin(), held.end(), expr->tensor) == held.end()) {
    result.push_back(
        {expr->tensor, address_of(program.tensor(expr->tensor), expr->operands), false});
  }
  for (const ir::ExprPtr& operand : expr->operands) {
    collect_loads(program, operand, held, seen, result);
  }
}

}  // namespace

std::vector<Access> accesses(const ir::Program& program, const ir::FusedStage& stage,
                             const std::vector<ir::TensorId>& held) {
  std::vector<Access> result;
  std::unordered_set<const Expr*> seen;
  collect_loads(program, stage.body, held, seen, result);
  if (std::find(held.begin(), held.end(), stage.output) == held.end()) {
    result.push_back({stage.output, address_of(program.tensor(stage.output), stage.store), true});
  }
  return result;
}

std::vector<ir::Axis> axes_of(const ir::FusedKernel& kernel, const ir::FusedStage& stage) {
  std::vector<ir::Axis> axes = kernel.rows;
  axes.insert(axes.end(), stage.inner.begin(), stage.inner.end());
  return axes;
}

int64_t product_of(const std::vector<ir::Axis>& axes) {
  int64_t product = 1;
  for (const ir::Axis& axis : axes) product *= axis.extent;
  return product;
}

double operations(const Expr& body) {
  std::unordered_set<const Expr*> seen;
  return count_operations(body, seen);
}

int64_t footprint_bytes(const ir::Tensor& tensor) {
  int64_t elements = 1;
  for (const int64_t extent : tensor.shape) elements *= extent;
  return elements * bytes_of(tensor.dtype);
}

std::vector<double> lane_scores(const ir::Program& program, const ir::FusedStage& stage,
                                int axis_count) {
  const std::vector<Access> touched = accesses(program, stage, {});
  std::vector<double> scores(static_cast<size_t>(axis_count));
  for (int axis = 0; axis < axis_count; ++axis) {
    for (const Access& access : touched) {
      const int64_t stride = access.address.coefficient_of_axis(axis);
      const bool irregular = access.address.depends_outside_affine(axis);
      const double weight = access.store ? 2 : 1;
      const double regular = stride == 1 ? 2 : stride == 0 ? 0.5 : -1;
      scores[static_cast<size_t>(axis)] += weight * (irregular ? -2 : regular);
    }
  }
  return scores;
}

}  // namespace ke::target
