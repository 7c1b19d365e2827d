// SPDX-License-Identifier: Apache-2.0
//
// Collapsing: two adjacent axes become one when every load and store of the kernel moves by
// stride(outer) == stride(inner) * extent(inner), and nothing else looks at either of them.
#include <algorithm>
#include <set>

#include "ir/kernel_builder.hpp"

namespace ke::ir {
namespace {

// Strides of every access by axis, and the axes whose values are used outside of addresses.
class AccessWalk {
 public:
  AccessWalk(const Program& program, std::vector<int64_t> extents)
      : program_(program), extents_(std::move(extents)), pinned_(extents_.size(), false) {}

  void value(const ExprPtr& e) {
    if (!seen_.insert(e.get()).second) return;
    if (e->kind == Expr::Kind::axis) pinned_[static_cast<size_t>(e->axis)] = true;
    if (e->kind == Expr::Kind::load) return access(e->tensor, e->operands);
    for (const ExprPtr& operand : e->operands) value(operand);
  }

  void access(TensorId tensor, const std::vector<ExprPtr>& indices) {
    strides_.emplace_back(extents_.size(), 0);
    const ExprPtr offset = element_offset(program_.tensor(tensor), indices, extents_);
    kept_.push_back(offset);  // seen_ holds addresses of its nodes
    collect(offset, 1);
  }

  bool walks_as_one(size_t outer) const {
    if (pinned_[outer] || pinned_[outer + 1]) return false;
    return std::all_of(strides_.begin(), strides_.end(), [&](const std::vector<int64_t>& strides) {
      return strides[outer] == strides[outer + 1] * extents_[outer + 1];
    });
  }

 private:
  void collect(const ExprPtr& e, int64_t factor) {
    if (e->kind == Expr::Kind::constant) return;
    if (e->kind == Expr::Kind::axis) {
      strides_.back()[static_cast<size_t>(e->axis)] += factor;
      return;
    }
    if (e->kind == Expr::Kind::binary && e->binary <= BinaryOp::mul) {
      const ExprPtr &a = e->operands[0], &b = e->operands[1];
      if (e->binary != BinaryOp::mul) {
        collect(a, factor);
        return collect(b, e->binary == BinaryOp::add ? factor : -factor);
      }
      int64_t scaled = 0;
      const bool constant = b->kind == Expr::Kind::constant;
      if (constant && !__builtin_mul_overflow(factor, b->int_value, &scaled)) {
        return collect(a, scaled);
      }
    }
    // Not affine: the axes in it are pinned, but a nested load is an access like any other.
    const std::vector<int64_t> current = strides_.back();
    strides_.pop_back();
    value(e);
    strides_.push_back(current);
  }

  const Program& program_;
  std::vector<int64_t> extents_;
  std::vector<bool> pinned_;
  std::vector<std::vector<int64_t>> strides_;  // one vector an access
  std::set<const Expr*> seen_;
  std::vector<ExprPtr> kept_;
};

std::vector<int64_t> extents_of(const FusedKernel& kernel, const FusedStage& stage) {
  std::vector<int64_t> extents;
  for (const Axis& a : kernel.rows) extents.push_back(a.extent);
  for (const Axis& a : stage.inner) extents.push_back(a.extent);
  return extents;
}

// joins[i]: axis i and axis i + 1 become one. Appends the merged axes and each old one over them.
void merge(const std::vector<Axis>& axes, const std::vector<bool>& joins, int first_position,
           std::vector<Axis>& merged, std::vector<ExprPtr>& old) {
  for (size_t begin = 0; begin < axes.size();) {
    size_t end = begin + 1;
    while (end < axes.size() && joins[end - 1]) ++end;
    Axis whole = axes[begin];
    for (size_t i = begin + 1; i < end; ++i) {
      whole.name += "_" + axes[i].name;
      whole.extent *= axes[i].extent;
    }
    const ExprPtr fresh = axis(first_position + static_cast<int>(merged.size()));
    int64_t below = whole.extent;
    for (size_t i = begin; i < end; ++i) {
      below /= std::max<int64_t>(axes[i].extent, 1);
      const ExprPtr quotient = binary(BinaryOp::floor_div, fresh, index_constant(below));
      old.push_back(i == begin ? quotient
                               : binary(BinaryOp::mod, quotient, index_constant(axes[i].extent)));
    }
    merged.push_back(std::move(whole));
    begin = end;
  }
}

}  // namespace

void collapse(const Program& program, FusedKernel& kernel, const std::vector<int>& row_class) {
  const size_t rows = kernel.rows.size();
  std::vector<bool> row_joins(rows, false);
  for (size_t r = 0; r + 1 < rows; ++r) row_joins[r] = row_class[r] == row_class[r + 1];
  std::vector<std::vector<bool>> inner_joins;
  for (const FusedStage& stage : kernel.stages) {
    AccessWalk walk(program, extents_of(kernel, stage));
    walk.value(stage.body);
    walk.access(stage.output, stage.store);
    for (size_t r = 0; r + 1 < rows; ++r) row_joins[r] = row_joins[r] && walk.walks_as_one(r);
    std::vector<bool>& joins = inner_joins.emplace_back(stage.inner.size(), false);
    for (size_t i = 0; i + 1 < stage.inner.size(); ++i) joins[i] = walk.walks_as_one(rows + i);
  }
  std::vector<Axis> merged_rows;
  std::vector<ExprPtr> old_rows;
  merge(kernel.rows, row_joins, 0, merged_rows, old_rows);
  kernel.rows = std::move(merged_rows);
  for (size_t s = 0; s < kernel.stages.size(); ++s) {
    FusedStage& stage = kernel.stages[s];
    std::vector<Axis> inner;
    std::vector<ExprPtr> old = old_rows;
    merge(stage.inner, inner_joins[s], static_cast<int>(kernel.rows.size()), inner, old);
    stage.inner = std::move(inner);
    const std::vector<int64_t> extents = extents_of(kernel, stage);
    stage.body = simplify_index(substitute_axes(stage.body, old), extents);
    for (ExprPtr& index : stage.store) {
      index = simplify_index(substitute_axes(index, old), extents);
    }
  }
}

}  // namespace ke::ir
