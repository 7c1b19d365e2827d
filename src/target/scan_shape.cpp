// SPDX-License-Identifier: Apache-2.0
#include "target/scan_shape.hpp"

#include "target/access.hpp"

namespace ke::target {
namespace {

using ir::DType;
using ir::ReduceOp;

bool accumulates(const ir::FusedStage& scan) {
  return scan.reduce == ReduceOp::sum || scan.reduce == ReduceOp::product;
}

// Accesses that walk the axis forwards, less those that walk it backwards.
int64_t forwards(const ir::Program& program, const ir::FusedKernel& kernel, int axis) {
  int64_t count = 0;
  for (const ir::FusedStage& stage : kernel.stages) {
    for (const Access& access : accesses(program, stage, kernel.internals)) {
      const int64_t stride = access.address.coefficient_of_axis(axis);
      count += stride > 0 ? 1 : stride < 0 ? -1 : 0;
    }
  }
  return count;
}

// Turns its indices round, so that the inner axis runs the way memory does.
void run_forwards(ScanShape& shape) {
  std::vector<ir::ExprPtr> flipped(shape.kernel.rows.size());
  flipped.push_back(ir::binary(ir::BinaryOp::sub, ir::index_constant(shape.length - 1),
                               ir::axis(shape.axis())));
  for (ir::FusedStage& stage : shape.kernel.stages) {
    std::vector<int64_t> extents;
    for (const ir::Axis& axis : axes_of(shape.kernel, stage)) extents.push_back(axis.extent);
    stage.body = ir::simplify_index(ir::substitute_axes(stage.body, flipped), extents);
    for (ir::ExprPtr& index : stage.store) {
      index = ir::simplify_index(ir::substitute_axes(index, flipped), extents);
    }
  }
}

void suggest_axis(const ir::Program& program, ScanShape& shape) {
  std::vector<double> scores(shape.kernel.rows.size() + 1);
  for (const ir::FusedStage& stage : shape.kernel.stages) {
    const auto more = lane_scores(program, stage, static_cast<int>(scores.size()));
    for (size_t k = 0; k < scores.size(); ++k) scores[k] += more[k];
  }
  for (size_t k = 0; k + 1 < scores.size(); ++k) {
    const bool better =
        shape.row_axis < 0 || scores[k] >= scores[static_cast<size_t>(shape.row_axis)];
    if (better) shape.row_axis = static_cast<int>(k);
  }
  shape.across =
      shape.row_axis >= 0 && scores[static_cast<size_t>(shape.row_axis)] > scores.back();
}

}  // namespace

int64_t ScanShape::row_extent() const {
  return row_axis < 0 ? 1 : kernel.rows[static_cast<size_t>(row_axis)].extent;
}

ScanShape scan_shape(const ir::Program& program, const ir::FusedKernel& kernel) {
  ScanShape shape{kernel};
  shape.rows = product_of(kernel.rows);
  shape.length = kernel.stages.front().inner.front().extent;
  shape.backwards = forwards(program, kernel, shape.axis()) < 0;
  if (shape.backwards) run_forwards(shape);
  suggest_axis(program, shape);
  return shape;
}

DType scan_dtype(const ir::FusedStage& scan) {
  const DType dtype = accumulates(scan) ? scan.accumulator : scan.body->dtype;
  return dtype == DType::float16 || dtype == DType::bfloat16 ? DType::float32 : dtype;
}

DType carry_dtype(const ir::FusedStage& scan) {
  const DType dtype = scan_dtype(scan);
  return accumulates(scan) && is_floating(dtype) ? DType::float64 : dtype;
}

DType block_dtype(const ir::FusedStage& scan) {
  return scan.reduce == ReduceOp::product ? carry_dtype(scan) : scan_dtype(scan);
}

}  // namespace ke::target
