// SPDX-License-Identifier: Apache-2.0
//
// What vectors need to know of a stage's accesses, and what they cost on this machine.
#pragma once

#include <vector>

#include "domain/machine.hpp"
#include "target/access.hpp"
#include "target/x86/skeleton.hpp"

namespace ke::x86 {

using target::Access;
using target::accesses;
using target::axes_of;
using target::footprint_bytes;
using target::lane_scores;
using target::operations;
using target::product_of;

// Nanoseconds to move `bytes` once, given where so many bytes can live, with all or one thread.
double move_ns(double bytes, double footprint, bool parallel, const MachineProfile& machine);
// Nanoseconds of `count` weighted f32 operations, in vectors or one by one.
double compute_ns(double count, bool vectorized, bool parallel, const MachineProfile& machine);

// What a kernel moves, in bytes, and computes, in weighted operations.
struct Traffic {
  double read = 0, written = 0, operations = 0;
};
Traffic traffic_of(const ir::Program& program, const ir::FusedKernel& kernel);

inline constexpr double kForkJoinNs = 4000;  // one parallel_for

// Whether every vector of the stage's store along the lane axis begins at a multiple of 32 bytes,
// as streaming stores demand.
bool stores_aligned(const ir::Program& program, const ir::FusedStage& stage, int lane_axis,
                    int lanes);

// Whether stores past the caches pay: for outputs of the program beyond the first-level caches
// (a plain store to a line that is not cached reads it first), and for intermediates that would not
// be found in the last-level cache anyway.
bool prefers_streaming(const ir::Program& program, const ir::FusedKernel& kernel,
                       const MachineProfile& machine);

// C variables for axes: their names, made different from every tensor of the program.
std::vector<std::string> axis_variables(const PrintContext& context,
                                        const std::vector<ir::Axis>& axes);

// Lanes of the vectors for a kernel: as many as its narrowest common type of 4 or 8 bytes has.
int natural_lanes(const ir::Program& program, const ir::FusedKernel& kernel,
                  const MachineProfile& machine);

}  // namespace ke::x86
