// SPDX-License-Identifier: Apache-2.0
//
// The suite that every target passes: every operation on every type, and seeded random programs
// under random plans and schedules, are printed, compiled in batches, run, and compared with
// ir::interpret. For a target whose kernels run on a device they are printed and compiled here;
// running them is skipped, in a sentence. A target joins with one line:
//
//   KE_CONFORMANCE(x86)
#pragma once

#include <gtest/gtest.h>

#include <span>
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

// The suite, as the target's kind allows.
void expect_conformance(const TargetInfo& info, const std::vector<ConformanceCase>& cases,
                        const MachineProfile& machine);

// For sources in C++ with the kernel contract: prints, builds (one translation unit for all) and
// runs; fails the current test where a result differs. Skips when the toolchain is missing.
void expect_conformance(const Target& target, const std::vector<ConformanceCase>& cases,
                        const MachineProfile& machine);

// Fills the first input, float32 rows of `length`, with terms each of which vanishes beside the one
// large term of its row, though together they do not. That one is elsewhere in every row, first in
// the first one. Demands what no accumulator reaches that goes on for long after it.
void plant_large_terms(ConformanceCase& one, int64_t length);

// Fills the first input, float32 rows of `length`, with terms each of which vanishes beside the one
// large term of its row, though together they do not. That one is elsewhere in every row, first in
// the first one. Demands what no accumulator reaches that goes on for long after it.
void plant_large_terms(ConformanceCase& one, int64_t length);

// Compares what a kernel computed with the interpreter; fails the current test where it differs.
void expect_result(const ConformanceCase& one, const std::vector<ir::TensorBytes>& actual);

// Cases printed as one source, as the shape cases of one problem are. Those that the target says it
// cannot print are left out; a test fails when these are more than a tenth.
struct PrintedTogether {
  std::string source;
  std::vector<const ConformanceCase*> cases;  // in the order of the source's
};
PrintedTogether print_together(const Target& target, std::span<const ConformanceCase> cases,
                               const MachineProfile& machine);

// One case for each operation and operand type that ir::accepts, over ordinary and special values.
std::vector<ConformanceCase> operation_cases();
// Seeded random programs, under greedy or mutated plans and random schedules.
std::vector<ConformanceCase> random_cases(const Target& target, uint64_t seed, int count,
                                          const MachineProfile& machine);

}  // namespace ke::target

#define KE_CONFORMANCE(target_name)                                                             \
  TEST(Conformance_##target_name, EveryOperationMeansWhatTheInterpreterSays) {                  \
    const ke::TargetInfo& info = *ke::find_target(#target_name);                                \
    ke::target::expect_conformance(info, ke::target::operation_cases(), {});                    \
  }                                                                                             \
  TEST(Conformance_##target_name, RandomProgramsMeanWhatTheInterpreterSays) {                   \
    const ke::TargetInfo& info = *ke::find_target(#target_name);                                \
    const auto target = info.make();                                                            \
    for (uint64_t seed = 1; seed <= 3; ++seed) {                                                \
      ke::target::expect_conformance(info, ke::target::random_cases(*target, seed, 8, {}), {}); \
    }                                                                                           \
  }
