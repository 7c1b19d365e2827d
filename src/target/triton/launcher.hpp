// SPDX-License-Identifier: Apache-2.0
//
// A program as one Python function: its kernels, and what launches them one after another.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "ir/plan.hpp"

namespace ke::triton {

// `function` takes the program's inputs in order and returns a tuple of its outputs, which have
// these shapes (of as many elements as the program's). The kernels must be printable.
std::string print_launcher(const ir::Program& program, std::span<const ir::FusedKernel> kernels,
                           const std::vector<std::vector<int64_t>>& shapes,
                           const std::string& function);

}  // namespace ke::triton
