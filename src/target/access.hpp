// SPDX-License-Identifier: Apache-2.0
//
// What a fused stage touches, for choosing axes and estimating time: addresses, bytes, operations.
#pragma once

#include <vector>

#include "ir/plan.hpp"
#include "target/c_printer.hpp"

namespace ke::target {

struct Access {
  ir::TensorId tensor;
  Address address;
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

// How well each axis of a stage serves as the one that neighbouring elements are handled along:
// contiguous accesses count for it, strided and irregular ones against it.
std::vector<double> lane_scores(const ir::Program& program, const ir::FusedStage& stage,
                                int axis_count);

}  // namespace ke::target
