// SPDX-License-Identifier: Apache-2.0
#include "eval/event_counts.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "eval/correctness.hpp"

namespace ke {
namespace {

using os::Counter;

constexpr Nanoseconds kCounted = std::chrono::milliseconds(50);  // counters take turns of a few ms
constexpr int64_t kCountedCallsMax = 1000;
constexpr Counter kMisses[] = {Counter::branch_misses, Counter::l1d_misses, Counter::llc_misses,
                               Counter::dtlb_misses};

// One sentence rather than the same one for each.
void name_hardware_once(EventCounts& counts) {
  const auto first = counts.missing.find(std::string(enum_name(Counter::cycles)));
  if (first == counts.missing.end()) return;
  const std::string reason = first->second;
  std::vector<std::string> names;
  for (int i = 0; i < os::kCounterCount; ++i) {
    const auto counter = static_cast<Counter>(i);
    if (!os::is_hardware(counter)) continue;
    names.emplace_back(enum_name(counter));
    const auto found = counts.missing.find(names.back());
    if (found == counts.missing.end() || found->second != reason) return;
  }
  for (const std::string& name : names) counts.missing.erase(name);
  counts.missing["hardware_counters"] = reason;
}

// Runs a batch through the sets in order.
Result<runner::Outcome> run_calls(runner::Runner& runner, int64_t calls, int64_t set_count,
                                  Nanoseconds timeout) {
  std::vector<int64_t> slots;
  for (int64_t i = 0; i < calls; ++i) slots.push_back(kFirstTimingSlot + i % set_count);
  return runner.run(slots, timeout);
}

EventCounts without_counts(const runner::RunnerFailure& failure) {
  EventCounts counts;
  counts.missing["counters"] = "it failed when it was run to be counted: " + failure.detail;
  return counts;
}

}  // namespace

EventCounts events_per_call(const os::CounterValues& values, int64_t calls) {
  EventCounts counts;
  for (const auto& [counter, count] : values.counted) {
    counts.per_call.emplace(enum_name(counter), count / static_cast<double>(calls));
  }
  for (const auto& [counter, why] : values.missing) counts.missing.emplace(enum_name(counter), why);
  name_hardware_once(counts);
  const auto count_of = [&](Counter counter) {
    const auto found = values.counted.find(counter);
    return found == values.counted.end() ? 0.0 : found->second;
  };
  const double instructions = count_of(Counter::instructions);
  if (instructions <= 0) return counts;
  if (const double cycles = count_of(Counter::cycles); cycles > 0) {
    counts.per_call["instructions_per_cycle"] = instructions / cycles;
  }
  for (const Counter counter : kMisses) {
    if (!values.counted.contains(counter)) continue;
    counts.per_call[fmt::format("{}_per_kiloinstruction", enum_name(counter))] =
        1000 * count_of(counter) / instructions;
  }
  return counts;
}

Result<EventCounts> count_events(runner::Host& host, SetStore& sets, const Problem& problem,
                                 int library_fd, Nanoseconds call_max) {
  const std::vector<HeldSet*> timing = TRY(sets.timing());
  runner::Runner runner = TRY(host.spawn());
  os::PerfCounters counters = runner.counters();
  for (size_t i = 0; i < timing.size(); ++i) {
    const OutputSet* outputs = TRY(sets.outputs(static_cast<int>(i)));
    const int slot = kFirstTimingSlot + static_cast<int>(i);
    const auto bound = TRY(runner.bind(slot, timing[i]->files(), files_of(*outputs)));
    if (const auto* failure = failure_of(bound)) return without_counts(*failure);
  }
  const auto loaded = TRY(runner.load(library_fd, problem, call_max));
  if (const auto* failure = failure_of(loaded)) return without_counts(*failure);
  // The first call of a set maps its pages, which is not the kernel's doing. One that takes long is
  // counted once more on the first set alone.
  const auto first = TRY(run_calls(runner, 1, 1, call_max));
  if (const auto* failure = failure_of(first)) return without_counts(*failure);
  const Nanoseconds call = std::max(std::get<Nanoseconds>(first), Nanoseconds(1));
  const int64_t set_count = call < kCounted ? static_cast<int64_t>(timing.size()) : 1;
  if (set_count > 1) {
    const auto warmed = TRY(run_calls(runner, set_count, set_count, set_count * call_max));
    if (const auto* failure = failure_of(warmed)) return without_counts(*failure);
  }
  const int64_t calls = std::clamp<int64_t>(kCounted / call, 1, kCountedCallsMax);
  counters.start();
  const auto counted = TRY(run_calls(runner, calls, set_count, call_max + 20 * calls * call));
  counters.stop();
  if (const auto* failure = failure_of(counted)) return without_counts(*failure);
  return events_per_call(counters.read(), calls);
}

}  // namespace ke
