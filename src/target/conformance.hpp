// SPDX-License-Identifier: Apache-2.0
//
// The suite that every native target (one whose sources are C++ with the kernel contract) passes:
// every operation on every type, and seeded random programs under random plans and schedules, are
// printed, compiled in batches, run, and compared with ir::interpret. A target joins with one line:
//
//   KE_CONFORMANCE(x86)
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "ir/interpret.hpp"
#include "target/target.hpp"

namespace ke::target {

// A program to be compared, with how it is planned.
struct ConformanceCase {
  std::string name;  // printed on failure: a seed, or the operation
  ir::Program program;
  ir::Plan plan;
  std::vector<ir::TensorBytes> inputs;
  // Difference allowed: relative to the element, and to the largest finite element of the output.
  double relative = 4e-6, of_largest = 4e-6;
};

// Prints, builds (one translation unit for all) and runs; fails the current test where a result
// differs. Skips when the target's toolchain is missing.
void expect_conformance(const Target& target, const std::vector<ConformanceCase>& cases,
                        const MachineProfile& machine);

// One case for each operation and operand type that ir::accepts, over ordinary and special values.
std::vector<ConformanceCase> operation_cases();
// Seeded random programs, under greedy or mutated plans and random schedules.
std::vector<ConformanceCase> random_cases(const Target& target, uint64_t seed, int count,
                                          const MachineProfile& machine);

}  // namespace ke::target

#define KE_CONFORMANCE(target_name)                                                                \
  TEST(Conformance_##target_name, EveryOperationMeansWhatTheInterpreterSays) {                     \
    const auto target = ke::find_target(#target_name)->make();                                     \
    ke::target::expect_conformance(*target, ke::target::operation_cases(), {});                    \
  }                                                                                                \
  TEST(Conformance_##target_name, RandomProgramsMeanWhatTheInterpreterSays) {                      \
    const auto target = ke::find_target(#target_name)->make();                                     \
    for (uint64_t seed = 1; seed <= 3; ++seed) {                                                   \
      ke::target::expect_conformance(*target, ke::target::random_cases(*target, seed, 8, {}), {}); \
    }                                                                                              \
  }
