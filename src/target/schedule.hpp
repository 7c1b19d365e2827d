// SPDX-License-Identifier: Apache-2.0
//
// Reading a kernel's schedule, whatever a plan put in it.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "ir/plan.hpp"
#include "target/target.hpp"

namespace ke::target {

// The value of a schedule entry, or the preferred one of `choices`, snapped to a legal value.
int64_t chosen(const ir::FusedKernel& kernel, std::span<const ScheduleChoice> choices,
               std::string_view name);

// Powers of two times `lowest`, up to `highest`; preferred is the greatest up to `preferred`.
ScheduleChoice powers_choice(std::string name, int64_t lowest, int64_t highest, int64_t preferred);

}  // namespace ke::target
