// SPDX-License-Identifier: Apache-2.0
//
// Level 3: the plan, which is the synthesizer's genome. It says which stages form a kernel and how
// each kernel is scheduled. A stage named by no kernel is inlined into its consumers (legal for map
// stages only). realize() turns (program, plan) into fused kernels that a target can print.
//
// Skeletons (DESIGN section 5): map, reduce, contract, scan. What a schedule may hold is the
// target's data: here it is only names and integers.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/digest.hpp"
#include "base/json_fwd.hpp"
#include "base/result.hpp"
#include "ir/program.hpp"

namespace ke::ir {

enum class Skeleton : uint8_t { map, reduce, contract, scan };

using Schedule = std::map<std::string, int64_t>;

struct KernelPlan {
  Skeleton skeleton = Skeleton::map;
  std::vector<StageId> stages;  // in program order
  Schedule schedule;            // missing names take the target's default
  bool operator==(const KernelPlan&) const = default;
};

struct Plan {
  std::vector<KernelPlan> kernels;  // in execution order
  bool operator==(const Plan&) const = default;
};

// --- Fused kernels ------------------------------------------------------------------------------

// One loop of a fused kernel. Axes of `body` and `store` are numbered rows first (the kernel's),
// then `inner`. Bodies have every inlined stage substituted.
//  - reduce != none: a reduction over `inner` for each row, giving one value a row; where it scans,
//    one value an element: the reduction of the row up to there.
//  - inner empty: one scalar computed a row.
//  - otherwise a map over rows x inner.
// A kernel of skeleton map has no inner axes at all: its rows are the elements. A kernel of
// skeleton contract starts with one sum-reduction stage whose body is mul(a, b) and whose inner
// axes are k, followed by stages without inner axes (the epilogue), all over the rows [batch...,
// m..., n...]: m are the rows only a depends on, n those only b depends on, and neither is missing.
// A kernel of skeleton scan starts with one scan over its single inner axis, followed by maps over
// the same rows and inner axis, which read the scan, and each other, at their own element only. The
// scan of a flipped tensor that is flipped back is one kernel whose accesses all run backwards.
// Rows and inner axes of extent 1 are gone (a reduction keeps one); an index of a collapsed axis
// reads axis / E and axis % E, which element_offset() turns into one stride again.
struct FusedStage {
  TensorId output;
  std::vector<Axis> inner;
  ReduceOp reduce = ReduceOp::none;
  bool scan = false;
  DType accumulator = DType::float32;
  ExprPtr body;
  std::vector<ExprPtr> store;  // one index a dimension of the output
  std::string origin;          // "aten.mul.Tensor, aten.leaky_relu.default"
};

struct FusedKernel {
  std::string name;  // "kernel0_softmax", an identifier
  Skeleton skeleton = Skeleton::map;
  std::vector<Axis> rows;
  std::vector<FusedStage> stages;
  std::vector<TensorId> reads;      // tensors loaded that this kernel does not write
  std::vector<TensorId> writes;     // materialised: program outputs and what later kernels load
  std::vector<TensorId> internals;  // written and read only here, at one place: registers
  Schedule schedule;
};

// Inlines, maps axes, collapses adjacent axes that every access walks as one, and orders. The error
// says which stage cannot be where the plan puts it.
Result<std::vector<FusedKernel>> realize(const Program& program, const Plan& plan);

// realize() without the result, plus: every output is computed, kernels are in order.
Result<void> verify(const Program& program, const Plan& plan);

// A legal plan that fuses greedily: pointwise into consumers, reductions over the same rows and
// their users into one kernel, pointwise tails into a contraction's epilogue.
Plan fuse_greedily(const Program& program);

// Every legal plan that differs from `plan` by one move of a fusion boundary (merge two kernels,
// split one, inline or materialise one stage). Schedules of untouched kernels are kept.
std::vector<Plan> fusion_neighbours(const Program& program, const Plan& plan);

// --- Text and JSON: decode(encode(p)) is p; decode refuses unknown fields and out-of-range ids ---
std::string print(const Plan& plan);
Json encode(const Plan& plan);
Result<Plan> decode_plan(const Json& json, const Program& program);
Digest digest_of(const Plan& plan);

}  // namespace ke::ir

template <>
inline constexpr std::array<std::string_view, 4> ke::kEnumNames<ke::ir::Skeleton>{
    "map", "reduce", "contract", "scan"};
