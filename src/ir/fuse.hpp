// SPDX-License-Identifier: Apache-2.0
//
// The decisions of fuse_greedily(), for its tests: which stages are worth a tensor of their own.
#pragma once

#include <vector>

#include "ir/kernel_builder.hpp"

namespace ke::ir {

// One flag a stage: whether it gets a kernel (false: inlined, or dead). The rule, in units of one
// simple scalar operation per element of the stage's result:
//  - Outputs and reductions are materialised.
//  - A stage that looks at a reduction's result and is read along further axes (a mean, a
//  reciprocal
//    root) is materialised: it becomes one value a row of the reduction's kernel.
//  - A stage that looks at a contraction's result and is read by a reduction is materialised: it is
//    the contraction's epilogue, and the contraction's own result is never stored.
//  - Otherwise recomputing costs (reads - 1) * cost, where reads counts distinct (reader, index)
//    pairs, each weighted by the reader's iterations per element, and storing costs 8 for the write
//    and 8 for each reader. The cheaper one wins. A reader that is a contraction packs its operands
//    once (weight 1); a cheap body (cost <= 8) read along further axes is hoisted (weight <= 2).
std::vector<bool> worth_storing(const ProgramIndex& index);

// Scalar operations of one evaluation of the body: 1 a simple one, 4 a division or root, 16 a
// transcendental one, 4 an index division, 1 a load after the first; index arithmetic is free.
int64_t cost_of(const Expr& body);

// Adds the stage to the kernel, changing a map kernel into another one when the stage reduces.
// Nothing when the result is no legal kernel.
std::optional<KernelPlan> with_stage(const ProgramIndex& index, Inliner& inliner,
                                     const KernelPlan& kernel, StageId stage);

// Both kernels as one, stages in program order; the schedule is the default. Nothing when illegal.
std::optional<KernelPlan> merged(const ProgramIndex& index, Inliner& inliner, const KernelPlan& a,
                                 const KernelPlan& b);

// The kernel of that one stage: contract where it can be one, else reduce or map.
KernelPlan alone(const ProgramIndex& index, Inliner& inliner, StageId stage);

// The skeleton that stages need which are no contraction: scan, reduce or map.
Skeleton skeleton_of(const Program& program, const std::vector<StageId>& stages);

// Tensors that the body loads.
std::set<int> tensors_loaded(const ExprPtr& body);

}  // namespace ke::ir
