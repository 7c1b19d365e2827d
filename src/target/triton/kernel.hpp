// SPDX-License-Identifier: Apache-2.0
//
// One fused kernel as a Triton function, and how it is launched. Element types narrower than 32
// bits are computed in float32, as the IR demands.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "ir/plan.hpp"
#include "target/target.hpp"

namespace ke::triton {

struct KernelText {
  std::string function;   // at file scope, with its decorator
  std::string grid;       // "(12, 1)"
  std::string constants;  // "BLOCK=256"
  std::string schedule;   // in words
  int64_t warps = 4;
};

std::vector<ScheduleChoice> kernel_choices(const ir::Program& program,
                                           const ir::FusedKernel& kernel);

// The parameters are what the kernel writes, then what it reads, each once, constants included.
// Errc::unavailable when it cannot be printed.
Result<KernelText> print_kernel(const ir::Program& program, const ir::FusedKernel& kernel,
                                const std::string& name);

// Tensors in the order of the parameters.
std::vector<ir::TensorId> parameters_of(const ir::FusedKernel& kernel);

}  // namespace ke::triton
