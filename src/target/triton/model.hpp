// SPDX-License-Identifier: Apache-2.0
//
// A whole model as Python: the class ModelNew, whose parameters and buffers have the problem's
// names, and which computes the exported graph by the library's operators and by Triton kernels.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "domain/problem.hpp"
#include "ir/plan.hpp"
#include "target/target.hpp"

namespace ke::triton {

std::vector<ScheduleChoice> choices_of(std::span<const Problem* const> cases);

// Errc::unavailable when a case has no graph.
Result<std::string> print_module(std::span<const Problem* const> cases,
                                 const ir::Schedule& schedule);

}  // namespace ke::triton
