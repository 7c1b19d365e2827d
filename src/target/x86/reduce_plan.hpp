// SPDX-License-Identifier: Apache-2.0
//
// How a reduce kernel is laid out, decided before anything is printed.
//
//   lanes over the inner axis: a task is some rows; each reduction keeps a few vector accumulators,
//     and a row stays in cache from one stage to the next;
//   lanes over a row axis: a task is a tile of that axis; accumulators are arrays, one element a
//     row, so that memory is still walked contiguously;
//   split (lanes over the inner axis only): few but long rows are cut into parts. Every pass over
//     the row is a parallel_for of its own over the parts; partial results meet in scratch.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "target/x86/access.hpp"
#include "target/x86/vector_printer.hpp"

namespace ke::x86 {

enum class StageKind : uint8_t { reduction, row_value, map };
StageKind kind_of(const ir::FusedStage& stage);

// A reduction whose terms wait in the output of a later map stage, which needs them again.
struct KeptTerm {
  size_t reduction = 0, map = 0;  // stages
};

struct ReducePlan {
  int lanes = 1;
  bool rows_in_lanes = false;
  int row_axis = -1;            // the lane axis when rows_in_lanes
  std::vector<int> lane_axis;   // one a stage, otherwise: position among its axes, -1 for none
  int64_t rows = 1;             // product of the row extents
  int64_t outer = 1;            // of the row axes that are not the lane axis
  int64_t tile = 0, tiles = 1;  // of the lane axis when rows_in_lanes
  int64_t rows_per_task = 1;
  int64_t split = 1;           // parts of each row
  bool row_at_a_time = false;  // split: one row after the other, so that it stays in the cache
  int64_t unroll = 1;
  int64_t tasks = 1;
  bool parallel = false, streaming = false;
  std::optional<KeptTerm> kept;
};

std::vector<ScheduleChoice> reduce_choices(const ir::Program& program,
                                           const ir::FusedKernel& kernel,
                                           const MachineProfile& machine);
ReducePlan reduce_plan(const ir::Program& program, const ir::FusedKernel& kernel,
                       const MachineProfile& machine);
double reduce_estimate(const ir::Program& program, const ir::FusedKernel& kernel,
                       const MachineProfile& machine);

// Tensors that hold one value a row: results of reductions and of stages without inner axes.
std::vector<ir::TensorId> row_values(const ir::FusedKernel& kernel);
bool is_internal(const ir::FusedKernel& kernel, ir::TensorId tensor);
bool reads(const ir::FusedStage& stage, ir::TensorId tensor);

// The kernel's first term worth keeping, if any.
std::optional<KeptTerm> kept_term(const ir::Program& program, const ir::FusedKernel& kernel);
// The kernel whose map stage loads the kept term instead of computing it. Storing it is left to the
// printer of the reduction.
ir::FusedKernel with_kept_term(const ir::FusedKernel& kernel, const KeptTerm& kept);

// Terms that one accumulator of a sum takes before it joins the total. A term beside which the
// others are small swallows what comes after it (the square of one outlier in a row, whose place
// must not matter), and equal terms are rounded the same way each time: a short run bounds both.
inline constexpr int64_t kRun = 16;

// --- What an accumulator is and does ------------------------------------------------------------

bool is_position(ir::ReduceOp op);  // argmax, argmin
ir::DType accumulator_dtype(const ir::FusedStage& stage);
// What accumulators join in, where `accumulators` of them share a row: float64 for sums of float32
// that are longer than a run of each, as there is no bound on how many runs follow a large one.
ir::DType total_dtype(const ir::FusedStage& stage, int64_t accumulators);
std::string identity_of(ir::ReduceOp op, ir::DType dtype);
// The combination of two accumulators, vectors when lanes > 1.
std::string combined(PrintContext& context, const ir::FusedStage& stage, int lanes,
                     const std::string& a, const std::string& b);
// The accumulator of a vector's lanes.
std::string across_lanes(PrintContext& context, const ir::FusedStage& stage, int lanes,
                         const Value& vector);
// "v > top, or v is the first NaN": whether v replaces the extreme found so far.
std::string replaces(const ir::FusedStage& stage, const std::string& v, const std::string& top,
                     bool vector);

// What a schedule's description says of stores and kept terms.
std::string notes_of(const ReducePlan& plan);

// One of the layouts. Errc::unavailable when a stage does not fit it.
Result<KernelCode> print_inner_lanes(PrintContext& context, const ReducePlan& plan);
Result<KernelCode> print_split(PrintContext& context, const ReducePlan& plan);
Result<KernelCode> print_row_lanes(PrintContext& context, const ReducePlan& plan);

}  // namespace ke::x86
