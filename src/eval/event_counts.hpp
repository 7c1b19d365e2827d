// SPDX-License-Identifier: Apache-2.0
//
// What the machine counts while a kernel runs: cycles, instructions, misses, faults, switches. The
// counters are the judge's, on the runner's process; nothing of it goes into a verdict or a time.
#pragma once

#include "domain/kernel_profile.hpp"
#include "eval/runner/client.hpp"
#include "eval/sets.hpp"
#include "os/perf_counters.hpp"

namespace ke {

// Shares of one call, and what follows from them.
EventCounts events_per_call(const os::CounterValues& values, int64_t calls);

// In a runner of its own, over the sets that timing rotates through. A kernel that fails meanwhile
// has no counts; "counters" is missing then, and says how it failed.
Result<EventCounts> count_events(runner::Host& host, SetStore& sets, const Problem& problem,
                                 int library_fd, Nanoseconds call_max);

}  // namespace ke
