// SPDX-License-Identifier: Apache-2.0
#include "eval/event_counts.hpp"

#include <gtest/gtest.h>

namespace ke {
namespace {

using os::Counter;

TEST(EventCounts, AreOfOneCallAndRatesFollowFromThem) {
  const EventCounts counts = events_per_call({.counted = {{Counter::cycles, 4000},
                                                          {Counter::instructions, 10'000},
                                                          {Counter::l1d_misses, 500},
                                                          {Counter::branch_misses, 0},
                                                          {Counter::page_faults, 20}},
                                              .missing = {{Counter::llc_misses, "no such event"}}},
                                             10);
  const std::map<std::string, double> expected{{"cycles", 400},
                                               {"instructions", 1000},
                                               {"l1d_misses", 50},
                                               {"branch_misses", 0},
                                               {"page_faults", 2},
                                               {"instructions_per_cycle", 2.5},
                                               {"l1d_misses_per_kiloinstruction", 50},
                                               {"branch_misses_per_kiloinstruction", 0}};
  EXPECT_EQ(counts.per_call, expected);
  EXPECT_EQ(counts.missing.size(), 1u);
  EXPECT_TRUE(counts.missing.contains("llc_misses"));
}

TEST(EventCounts, WithoutAnyHardwareCounterThatIsSaidOnce) {
  os::CounterValues values{.counted = {{Counter::task_clock_ns, 7e6}}, .missing = {}};
  for (int i = 0; i < os::kCounterCount; ++i) {
    const auto counter = static_cast<Counter>(i);
    if (os::is_hardware(counter)) values.missing[counter] = "a virtual machine";
  }
  values.missing[Counter::context_switches] = "forbidden";
  EventCounts counts = events_per_call(values, 7);
  const std::map<std::string, std::string> once{{"hardware_counters", "a virtual machine"},
                                                {"context_switches", "forbidden"}};
  EXPECT_EQ(counts.missing, once);
  EXPECT_EQ(counts.per_call, (std::map<std::string, double>{{"task_clock_ns", 1e6}}));
  // One that has a reason of its own is not swept along.
  values.missing[Counter::dtlb_misses] = "no such event";
  EXPECT_EQ(events_per_call(values, 7).missing.size(), 7u);
}

}  // namespace
}  // namespace ke
