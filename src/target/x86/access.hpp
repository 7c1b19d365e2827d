// SPDX-License-Identifier: Apache-2.0
//
// What a fused stage touches, for choosing axes and estimating time: addresses, bytes, operations.
#pragma once

#include <vector>

#include "domain/machine.hpp"
#include "ir/plan.hpp"
#include "target/c_printer.hpp"
#include "target/x86/skeleton.hpp"

namespace ke::x86 {

struct Access {
  ir::TensorId tensor;
  target::Address address;
  bool store = false;
};

// Every load of the stage's body (tensors in `held` excepted) and its store.
std::vector<Access> accesses(const ir::Program& program, const ir::FusedStage& stage,
                             const std::vector<ir::TensorId>& held);

// Axes of a stage: the kernel's rows, then its inner ones.
std::vector<ir::Axis> axes_of(const ir::FusedKernel& kernel, const ir::FusedStage& stage);
int64_t product_of(const std::vector<ir::Axis>& axes);

// Weighted scalar operations of one evaluation of the body: 1 for an addition, about 15 for exp.
double operations(const ir::Expr& body);

// Bytes of a tensor's elements that exist (not of what is read repeatedly).
int64_t footprint_bytes(const ir::Tensor& tensor);

// Nanoseconds to move `bytes` once, given where so many bytes can live, with all or one thread.
double move_ns(double bytes, double footprint, bool parallel, const MachineProfile& machine);
// Nanoseconds of `count` weighted f32 operations, in vectors or one by one.
double compute_ns(double count, bool vectorized, bool parallel, const MachineProfile& machine);

inline constexpr double kForkJoinNs = 4000;  // one parallel_for

// How well each axis of a stage serves as the lane axis: contiguous accesses count for it, strided
// and irregular ones against it.
std::vector<double> lane_scores(const ir::Program& program, const ir::FusedStage& stage,
                                int axis_count);

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
