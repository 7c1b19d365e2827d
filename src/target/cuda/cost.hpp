// SPDX-License-Identifier: Apache-2.0
//
// What kernels do, and how long the device may need for it: a roofline with the share of the
// device that a launch keeps busy.
#pragma once

#include <string>

#include "target/cuda/device.hpp"
#include "target/cuda/scalar_printer.hpp"
#include "target/schedule.hpp"

namespace ke::cuda {

using target::powers_choice;

struct KernelWork {
  double read = 0, written = 0;  // bytes, each tensor once
  double operations = 0;         // weighted, of all stages
};
KernelWork work_of(const ir::Program& program, const ir::FusedKernel& kernel);

// `share` of the bandwidth is what the kind of access allows when enough threads run.
double kernel_ns(const KernelWork& work, double threads, double share, const Device& device);

// "int", or "int64_t" where the extent needs it.
std::string_view index_type(const AxisBinding& axis);

bool is_internal(const ir::FusedKernel& kernel, ir::TensorId tensor);
bool reads(const ir::FusedStage& stage, ir::TensorId tensor);
// Whether `later` loads the output of `stage` at other indices than it is stored at.
bool reads_elsewhere(const ir::FusedStage& later, const ir::FusedStage& stage);

}  // namespace ke::cuda
