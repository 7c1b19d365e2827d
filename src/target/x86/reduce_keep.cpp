// SPDX-License-Identifier: Apache-2.0
//
// Terms worth keeping. A softmax needs e^(x - max) twice: summed, and divided by the sum. What the
// sum's pass computes can wait in the row's place of the output, which is about to be written
// anyway: one more store and load instead of a second exponential.
#include <algorithm>

#include "target/x86/reduce_plan.hpp"

namespace ke::x86 {
namespace {

using ir::ExprPtr;
using ir::FusedKernel;
using ir::FusedStage;

// Below this many operations computing a term again is as cheap as storing and loading it.
constexpr double kWorthKeeping = 6;

bool contains(const ExprPtr& whole, const ir::Expr& part) {
  bool found = false;
  walk(whole, [&](const ir::Expr& expr) { found = found || same(expr, part); });
  return found;
}

ExprPtr replaced(const ExprPtr& whole, const ir::Expr& part, const ExprPtr& by) {
  if (same(*whole, part)) return by;
  std::vector<ExprPtr> operands;
  for (const ExprPtr& operand : whole->operands) operands.push_back(replaced(operand, part, by));
  return operands.empty() ? whole : with_operands(*whole, std::move(operands));
}

bool can_hold(const ir::Program& program, const FusedKernel& kernel, const FusedStage& reduction,
              const FusedStage& map) {
  const ir::DType dtype = reduction.body->dtype;
  const bool exact = accumulator_dtype(reduction) == dtype &&
                     program.tensor(map.output).dtype == dtype && bytes_of(dtype) >= 4;
  if (!exact || is_internal(kernel, map.output) || map.inner.size() != reduction.inner.size()) {
    return false;
  }
  for (size_t k = 0; k < map.inner.size(); ++k) {
    if (map.inner[k].extent != reduction.inner[k].extent) return false;
  }
  return contains(map.body, *reduction.body) &&
         std::none_of(kernel.stages.begin(), kernel.stages.end(),
                      [&](const FusedStage& stage) { return reads(stage, map.output); });
}

}  // namespace

std::optional<KeptTerm> kept_term(const ir::Program& program, const FusedKernel& kernel) {
  for (size_t r = 0; r < kernel.stages.size(); ++r) {
    const FusedStage& reduction = kernel.stages[r];
    if (kind_of(reduction) != StageKind::reduction || is_position(reduction.reduce)) continue;
    if (operations(*reduction.body) < kWorthKeeping) continue;
    for (size_t m = r + 1; m < kernel.stages.size(); ++m) {
      if (kind_of(kernel.stages[m]) == StageKind::map &&
          can_hold(program, kernel, reduction, kernel.stages[m])) {
        return KeptTerm{r, m};
      }
    }
  }
  return std::nullopt;
}

FusedKernel with_kept_term(const FusedKernel& kernel, const KeptTerm& kept) {
  FusedKernel result = kernel;
  FusedStage& map = result.stages[kept.map];
  const ir::Expr& term = *kernel.stages[kept.reduction].body;
  map.body = replaced(map.body, term, load(map.output, term.dtype, map.store));
  return result;
}

}  // namespace ke::x86
