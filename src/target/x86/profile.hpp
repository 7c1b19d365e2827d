// SPDX-License-Identifier: Apache-2.0
//
// Profiles of x86 kernels from what tools print: the compiler's remarks on vectorisation, the
// disassembly, and a static pipeline model of the loop that looks hottest. All of these are guesses
// about a kernel that nobody ran, and hostile text: a reader here may find nothing, never fail.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "domain/kernel_profile.hpp"
#include "target/target.hpp"
#include "target/tools.hpp"

namespace ke::x86 {

struct HotLoop {
  std::string function;
  std::vector<std::string> instructions;  // "vmovups (%rdi,%rax,1),%ymm0"; jumps back go to .Lloop
};

// Of all innermost loops, the one that is nested most deeply; of several, one with vector
// arithmetic (the others are its remainders), then the one with the most arithmetic. Nothing when
// no loop computes.
std::optional<HotLoop> find_hot_loop(std::string_view disassembly);

struct LoopCounts {
  int64_t vector = 0, scalar = 0;  // floating or packed arithmetic
  int64_t spills = 0;              // accesses to the stack
};
LoopCounts count(const HotLoop& loop);

std::vector<std::string> vectorisation_remarks(std::string_view compiler_output);

struct PipelineEstimate {
  std::optional<double> cycles_per_iteration;
  std::optional<std::string> bottleneck;
};
PipelineEstimate read_pipeline_model(std::string_view output, int iterations);

KernelProfile profile(const BuildRecipe& recipe, ToolRunner& tools);

}  // namespace ke::x86
