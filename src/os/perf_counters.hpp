// SPDX-License-Identifier: Apache-2.0
//
// Counts what happens in another process while it runs: cycles and misses in the processor, faults
// and switches in the kernel. See perf_event_open(2). The counters are descriptors of the process
// that opened them: the one that is counted has no handle on them and cannot tell that they exist.
#pragma once

#include <sys/types.h>

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/enum_names.hpp"
#include "base/units.hpp"
#include "os/file_descriptor.hpp"

namespace ke::os {

// The processor's come first. They count the program's own instructions, not the kernel's: that
// needs no privilege, and is the part that a kernel's author can change.
enum class Counter : uint8_t {
  cycles,
  instructions,
  branch_misses,
  l1d_misses,
  llc_misses,
  dtlb_misses,
  page_faults,
  context_switches,
  cpu_migrations,
  task_clock_ns
};
inline constexpr int kCounterCount = 10;
constexpr bool is_hardware(Counter counter) { return counter <= Counter::dtlb_misses; }

struct CounterReading {
  int64_t count = 0;
  int64_t enabled_ns = 0;  // how long it should have counted
  int64_t running_ns = 0;  // how long it did
};

// The count for all of the enabled time. More counters than the processor has take turns, so each
// saw a part; nothing when it never had its turn.
std::optional<double> scaled(const CounterReading& reading);

// Each counter is in one of them.
struct CounterValues {
  std::map<Counter, double> counted;
  std::map<Counter, std::string> missing;  // why, and what to do about it
};

// What decides why a counter cannot be had.
struct CounterSupport {
  bool processor_shown = false;  // the kernel lists one that counts
  int paranoid = 0;              // kernel.perf_event_paranoid
};
std::string why_not(Counter counter, int errno_value, const CounterSupport& support);

// Not thread-safe.
class PerfCounters {
 public:
  // Opens what the machine offers, stopped. Counts the process's first thread and every thread and
  // process that comes from it afterwards, also when they have ended.
  static PerfCounters open(pid_t pid);

  const std::map<Counter, std::string>& missing() const { return missing_; }

  void start();
  void stop();
  CounterValues read() const;  // the sum of all times between start() and stop()

 private:
  std::map<Counter, FileDescriptor> open_;
  std::map<Counter, std::string> missing_;
};

}  // namespace ke::os

template <>
inline constexpr std::array<std::string_view, ke::os::kCounterCount>
    ke::kEnumNames<ke::os::Counter>{"cycles",      "instructions",     "branch_misses",
                                    "l1d_misses",  "llc_misses",       "dtlb_misses",
                                    "page_faults", "context_switches", "cpu_migrations",
                                    "task_clock_ns"};
