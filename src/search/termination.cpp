// SPDX-License-Identifier: Apache-2.0
#include "search/termination.hpp"

namespace ke {
namespace {

constexpr double kNearFloor = 1.10;

struct Rule {
  EndReason reason;
  bool (*applies)(const Progress& progress, const SearchOptions& options);
};

constexpr Rule kRules[] = {
    {EndReason::stopped, [](const Progress& p, const SearchOptions&) { return p.stop_requested; }},
    {EndReason::target_speedup,
     [](const Progress& p, const SearchOptions& o) {
       return o.target_speedup > 0 && p.best_fitness && *p.best_fitness >= o.target_speedup;
     }},
    {EndReason::near_floor,
     [](const Progress& p, const SearchOptions& o) {
       return o.stop_near_floor && p.floor_ns > 0 && p.best_time_ns &&
              static_cast<double>(*p.best_time_ns) <= kNearFloor * static_cast<double>(p.floor_ns);
     }},
    {EndReason::time,
     [](const Progress& p, const SearchOptions& o) {
       return o.time_limit.count() > 0 && p.elapsed >= o.time_limit;
     }},
    {EndReason::stall,
     [](const Progress& p, const SearchOptions& o) {
       return o.stall_steps > 0 && p.best_fitness && p.steps_since_gain >= o.stall_steps;
     }},
    {EndReason::steps,
     [](const Progress& p, const SearchOptions& o) { return p.fresh_steps >= o.steps; }},
};

}  // namespace

std::optional<EndReason> end_of(const Progress& progress, const SearchOptions& options) {
  for (const Rule& rule : kRules) {
    if (rule.applies(progress, options)) return rule.reason;
  }
  return std::nullopt;
}

}  // namespace ke
