// SPDX-License-Identifier: Apache-2.0
#include "os/perf_counters.hpp"

#include <fmt/format.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>

#include "os/file_system.hpp"

namespace ke::os {
namespace {

constexpr int kPrograms = 2;     // the most that perf_event_paranoid may be to count programs
constexpr int kWithKernel = 1;   // and to count what the kernel does for them

struct Event {
  uint32_t type = 0;
  uint64_t config = 0;
};

constexpr uint64_t read_misses_of(uint64_t cache) {
  return cache | (PERF_COUNT_HW_CACHE_OP_READ << 8) | (PERF_COUNT_HW_CACHE_RESULT_MISS << 16);
}

constexpr Event kEvents[kCounterCount] = {
    {PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
    {PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS},
    {PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES},
    {PERF_TYPE_HW_CACHE, read_misses_of(PERF_COUNT_HW_CACHE_L1D)},
    {PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES},
    {PERF_TYPE_HW_CACHE, read_misses_of(PERF_COUNT_HW_CACHE_DTLB)},
    {PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS},
    {PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES},
    {PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS},
    {PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK}};

// Switches and migrations happen inside the kernel: leaving it out would count none of them.
bool needs_kernel(Counter counter) {
  return counter == Counter::context_switches || counter == Counter::cpu_migrations;
}

FileDescriptor open_event(Counter counter, pid_t pid, bool with_kernel) {
  const Event& event = kEvents[static_cast<size_t>(counter)];
  perf_event_attr attributes{};
  attributes.size = sizeof attributes;
  attributes.type = event.type;
  attributes.config = event.config;
  attributes.disabled = 1;
  attributes.inherit = 1;
  attributes.exclude_kernel = with_kernel ? 0 : 1;
  attributes.exclude_hv = 1;
  attributes.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
  constexpr int kAnyProcessor = -1, kNoGroup = -1;
  return FileDescriptor(static_cast<int>(syscall(SYS_perf_event_open, &attributes, pid,
                                                 kAnyProcessor, kNoGroup, PERF_FLAG_FD_CLOEXEC)));
}

CounterSupport support_of_machine() {
  CounterSupport support;
  const std::string folder = "/sys/bus/event_source/devices";
  for (const std::string& name : list_directory(folder).value_or(std::vector<std::string>{})) {
    // "cpu", "cpu_core" and "cpu_atom", "armv8_pmuv3_0"
    support.processor_shown |= name.starts_with("cpu") || name.starts_with("armv8");
  }
  const std::string text = read_file("/proc/sys/kernel/perf_event_paranoid", 64).value_or("");
  std::from_chars(text.data(), text.data() + text.size(), support.paranoid);
  return support;
}

}  // namespace

std::optional<double> scaled(const CounterReading& reading) {
  if (reading.running_ns <= 0) return std::nullopt;
  const double share =
      static_cast<double>(reading.enabled_ns) / static_cast<double>(reading.running_ns);
  return static_cast<double>(reading.count) * share;
}

std::string why_not(Counter counter, int errno_value, const CounterSupport& support) {
  if (errno_value == ENOSYS) return "this kernel was built without perf events";
  if (errno_value == EACCES || errno_value == EPERM) {
    const int highest = needs_kernel(counter) ? kWithKernel : kPrograms;
    if (support.paranoid > highest) {
      return fmt::format("kernel.perf_event_paranoid is {}; `sysctl -w "
                         "kernel.perf_event_paranoid={}` as root allows it",
                         support.paranoid, highest);
    }
    return "perf_event_open is not permitted here; a container needs CAP_PERFMON for it";
  }
  if (is_hardware(counter) && !support.processor_shown) {
    return "the machine shows no hardware counters; virtual machines have them only when their "
           "host passes them on";
  }
  if (errno_value == ENOENT || errno_value == EOPNOTSUPP || errno_value == EINVAL) {
    return "this processor does not count it";
  }
  return fmt::format("the counter cannot be opened ({})", std::strerror(errno_value));
}

PerfCounters PerfCounters::open(pid_t pid) {
  PerfCounters counters;
  const CounterSupport support = support_of_machine();
  for (int i = 0; i < kCounterCount; ++i) {
    const auto counter = static_cast<Counter>(i);
    FileDescriptor event = open_event(counter, pid, !is_hardware(counter));
    int reason = event.valid() ? 0 : errno;
    const bool forbidden = reason == EACCES || reason == EPERM;
    if (forbidden && !is_hardware(counter) && !needs_kernel(counter)) {
      event = open_event(counter, pid, false);
      reason = event.valid() ? 0 : errno;
    }
    if (event.valid()) {
      counters.open_.emplace(counter, std::move(event));
    } else {
      counters.missing_.emplace(counter, why_not(counter, reason, support));
    }
  }
  return counters;
}

void PerfCounters::start() {
  for (const auto& [counter, event] : open_) ioctl(event.get(), PERF_EVENT_IOC_ENABLE, 0);
}

void PerfCounters::stop() {
  for (const auto& [counter, event] : open_) ioctl(event.get(), PERF_EVENT_IOC_DISABLE, 0);
}

CounterValues PerfCounters::read() const {
  CounterValues values{.counted = {}, .missing = missing_};
  for (const auto& [counter, event] : open_) {
    CounterReading reading;
    static_assert(sizeof reading == 3 * sizeof(uint64_t));  // as read_format asks for them
    const bool whole = ::read(event.get(), &reading, sizeof reading) == sizeof reading;
    const std::optional<double> count = whole ? scaled(reading) : std::nullopt;
    if (count) {
      values.counted.emplace(counter, *count);
    } else {
      values.missing.emplace(counter, "the counter never had its turn; other programs use it");
    }
  }
  return values;
}

}  // namespace ke::os
