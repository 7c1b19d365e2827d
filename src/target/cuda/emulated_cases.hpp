// SPDX-License-Identifier: Apache-2.0
//
// For tests: programs run by the host emulation, where they must mean what the interpreter says.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "base/rng.hpp"
#include "ir/random_program.hpp"
#include "target/conformance.hpp"
#include "target/cuda/emulate.hpp"

namespace ke::cuda {

using target::ConformanceCase;

// One source for all: the compiler's start costs more than a case.
inline void expect_emulated(std::span<const ConformanceCase> cases) {
  const auto target = find_target("cuda")->make();
  const target::PrintedTogether printed = target::print_together(*target, cases, {});
  ASSERT_EQ(printed.cases.size(), cases.size()) << "some were refused";
  const EmulatedSource source(printed.source);
  if (!source.ready()) return;
  for (size_t i = 0; i < printed.cases.size(); ++i) {
    const ConformanceCase& one = *printed.cases[i];
    SCOPED_TRACE(one.name);
    target::expect_result(one, source.run(i, one.program, one.inputs));
  }
}

inline void append(std::vector<ConformanceCase>& cases, std::vector<ConformanceCase> more) {
  cases.insert(cases.end(), std::make_move_iterator(more.begin()),
               std::make_move_iterator(more.end()));
}

// A program under each of the schedules; the greedy plan makes one kernel of it.
inline std::vector<ConformanceCase> scheduled(std::string_view name, const std::string& text,
                                              const std::vector<ir::Schedule>& schedules) {
  std::vector<ConformanceCase> cases;
  const auto program = ir::parse_program(text);
  EXPECT_TRUE(program) << name << ": " << program.error().to_string();
  if (!program) return cases;
  Rng rng(11);
  for (const ir::Schedule& schedule : schedules) {
    ir::Plan plan = ir::fuse_greedily(*program);
    EXPECT_EQ(plan.kernels.size(), 1u) << name;
    plan.kernels[0].schedule = schedule;
    std::string words;
    for (const auto& [decision, value] : schedule) words += fmt::format(" {}={}", decision, value);
    cases.push_back({std::string(name) + words, *program, plan, ir::random_inputs(*program, rng)});
  }
  return cases;
}

}  // namespace ke::cuda
