// SPDX-License-Identifier: Apache-2.0
#include "target/schedule.hpp"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "base/assert.hpp"

namespace ke::target {

int64_t chosen(const ir::FusedKernel& kernel, std::span<const ScheduleChoice> choices,
               std::string_view name) {
  for (const ScheduleChoice& choice : choices) {
    if (choice.name != name) continue;
    KE_ASSERT(!choice.values.empty());
    const auto entry = kernel.schedule.find(choice.name);
    if (entry == kernel.schedule.end()) return choice.preferred;
    int64_t best = choice.values.front();
    for (const int64_t value : choice.values) {
      if (std::abs(value - entry->second) < std::abs(best - entry->second)) best = value;
    }
    return best;
  }
  KE_ASSERT(false && "no such schedule choice");
}

ScheduleChoice powers_choice(std::string name, int64_t lowest, int64_t highest, int64_t preferred) {
  ScheduleChoice choice{std::move(name), {}, lowest};
  for (int64_t value = lowest; value <= std::max(lowest, highest); value *= 2) {
    choice.values.push_back(value);
    if (value <= preferred) choice.preferred = value;
  }
  return choice;
}

}  // namespace ke::target
