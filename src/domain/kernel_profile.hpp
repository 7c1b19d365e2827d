// SPDX-License-Identifier: Apache-2.0
//
// What tools say about one built kernel without running it and, of one that the judge has accepted,
// what was counted while it ran. A metric that could not be had is absent and says why; no number
// stands for "unknown".
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/json_fwd.hpp"
#include "base/result.hpp"

namespace ke {

struct KernelProfile {
  std::optional<int64_t> vector_instructions;  // packed arithmetic in the hot loop
  std::optional<int64_t> scalar_instructions;  // scalar floating arithmetic in the hot loop
  std::optional<int64_t> spills;               // stack loads and stores in the hot loop
  std::optional<double> cycles_per_iteration;  // of the hot loop, from a static pipeline model
  std::optional<std::string> bottleneck;       // what that model names
  std::string function;                        // that holds the hot loop
  std::vector<std::string> hot_loop;           // its instructions, capped
  std::vector<std::string> compiler_remarks;   // on vectorisation, capped
  std::map<std::string, double> counters;      // see EventCounts; empty when it was not run
  std::map<std::string, std::string> missing;  // metric to the reason why it is absent
};

// What was counted while a kernel ran, for one call: "cycles", "instructions", "branch_misses",
// "l1d_misses", "llc_misses", "dtlb_misses" of its own instructions, "page_faults",
// "context_switches", "cpu_migrations", "task_clock_ns"; and what follows from them,
// "instructions_per_cycle" and "<misses>_per_kiloinstruction".
struct EventCounts {
  std::map<std::string, double> per_call;
  std::map<std::string, std::string> missing;  // "hardware_counters": all of them, for one reason
};

void add(EventCounts counts, KernelProfile& profile);

Json encode(const KernelProfile& profile);
Result<KernelProfile> decode_kernel_profile(const Json& json);

}  // namespace ke
