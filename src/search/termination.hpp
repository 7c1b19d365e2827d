// SPDX-License-Identifier: Apache-2.0
//
// When a run ends: one table of rules, asked after every result.
#pragma once

#include <optional>

#include "search/search.hpp"

namespace ke {

struct Progress {
  int64_t fresh_steps = 0;       // judged here
  int64_t steps_since_gain = 0;  // since the best fitness last rose by 1 % or more
  Nanoseconds elapsed{0};
  std::optional<double> best_fitness;
  std::optional<int64_t> best_time_ns;
  int64_t floor_ns = 0;  // 0: unknown
  bool stop_requested = false;
};

// The first rule that applies, in the order of EndReason's importance to the user: their own stop
// first. Running out of proposals is no rule: the engine notices.
std::optional<EndReason> end_of(const Progress& progress, const SearchOptions& options);

// A gain that restarts the count of the stall rule.
inline constexpr double kGainMin = 1.01;

}  // namespace ke
