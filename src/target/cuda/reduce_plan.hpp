// SPDX-License-Identifier: Apache-2.0
//
// How a reduce kernel is laid out, decided before anything is printed.
//
//   rows shared: `members` neighbouring threads (a power of two) share a row and walk its inner
//     axes together, wide where the row is contiguous; they join their values by shuffles;
//     With `cluster` beyond 1 so many blocks share a row too long for the registers of one, and
//     join through each other's shared memory;
//   columns: where rows lie next to each other in memory, `lanes` neighbouring threads take
//     neighbouring rows; the other threads of a block share them and join through shared memory.
//
// With `split` beyond 1 every pass over the rows is a launch of its own with that many parts a row.
// Partial results meet in scratch, and each block of the next launch joins them again, in order:
// no atomics, so results do not depend on what ran first.
#pragma once

#include <string>
#include <vector>

#include "target/cuda/cost.hpp"
#include "target/cuda/elements.hpp"

namespace ke::cuda {

enum class StageKind : uint8_t { reduction, row_value, map };
StageKind kind_of(const ir::FusedStage& stage);

struct ReducePlan {
  int64_t rows = 1;  // product of the row extents
  bool columns = false;
  int row_axis = -1;           // along which columns lie
  std::vector<int> lane_axis;  // one a stage: position among its axes, -1 for none
  std::vector<int64_t> width;  // one a stage: neighbours that a thread handles at once
  int64_t members = 32;        // threads of a block that share a row
  int64_t lanes = 32;          // of columns
  int64_t cluster = 1;         // blocks that share a row
  int64_t block = 256;         // threads
  int64_t split = 1;
  bool recompute = false;  // local results of maps are computed again instead of stored
  bool keep_row = false;   // what several passes load waits in registers
  int64_t in_flight = 1;   // groups of neighbours whose loads a thread makes together
  int64_t longest = 1;     // iterations of the longest pass over one row

  int64_t rows_a_block() const { return columns ? lanes : block / members; }
  int64_t walkers() const { return members * cluster; }  // threads that share a row
};

std::vector<ScheduleChoice> reduce_choices(const ir::Program& program,
                                           const ir::FusedKernel& kernel, const Device& device);
ReducePlan reduce_plan(const ir::Program& program, const ir::FusedKernel& kernel,
                       const Device& device);

// Loads from memory that at least two passes over a row make at the same points, in words of the
// same width, as far as the registers of a block hold them. None unless the plan keeps rows.
std::vector<LoadArray> kept_loads(PrintContext& context, const ReducePlan& plan);
// Groups that a thread loads together where it has `count` over all members, and the loads of a
// stage that it makes so: none for a single group.
int64_t early_turns(const ReducePlan& plan, int64_t count);
std::vector<LoadArray> early_loads(PrintContext& context, const ReducePlan& plan, size_t s,
                                   int64_t turns);
// Words of `width` that one thread takes of a pass.
int64_t turns_of(const ir::FusedKernel& kernel, const ReducePlan& plan, size_t s);
bool makes_load(const ir::FusedStage& stage, const ir::Expr& load);

// The kernel without the maps whose results only it uses, at the points where they are made: their
// readers compute them. `elsewhere`: tensors that somebody else reads.
ir::FusedKernel recomputed(const PrintContext& context);
// Whether recomputed() could leave a stage out.
bool can_recompute(const ir::Program& program, const ir::FusedKernel& kernel);

// --- What an accumulator is and does ------------------------------------------------------------

bool is_position(ir::ReduceOp op);  // argmax, argmin
ir::DType accumulator_dtype(const ir::FusedStage& stage);
std::string accumulator_type(const ir::FusedStage& stage);  // "float", "ke_extreme<float>"
int64_t accumulator_bytes(const ir::FusedStage& stage);
std::string identity_of(const ir::FusedStage& stage);
// The expression that joins two accumulators.
std::string joined(const ir::FusedStage& stage, const std::string& a, const std::string& b);

// Terms that a thread adds up one after the other. More are a ke_sum: a term beside which others
// are small (the square of one outlier in a row) would swallow all that follow it.
inline constexpr int64_t kRun = 16;

// What a thread adds to: the accumulator itself, or a ke_sum that becomes it.
struct Accumulator {
  std::string name, type, identity;
  bool keeps_lost = false;
};
// `name` is what it is or becomes.
Accumulator accumulator_for(const ir::FusedStage& stage, const std::string& name, int64_t count);
std::string added(const ir::FusedStage& stage, const Accumulator& to, const std::string& term);

Result<KernelCode> print_reduce_kernel(PrintContext& context, const ReducePlan& plan);

}  // namespace ke::cuda
