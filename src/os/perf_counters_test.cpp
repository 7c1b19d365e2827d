// SPDX-License-Identifier: Apache-2.0
//
// The mechanism with the kernel's own events, which every machine has; the processor's are looked
// at where there are any.
#include "os/perf_counters.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

namespace ke::os {
namespace {

constexpr int64_t kPages = 256;

void touch_fresh_pages(int64_t pages) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const auto bytes = static_cast<size_t>(pages) * page;
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  madvise(memory, bytes, MADV_NOHUGEPAGE);  // one fault a page
  for (size_t at = 0; at < bytes; at += page) static_cast<volatile char*>(memory)[at] = 1;
  munmap(memory, bytes);
}

// A process that has pages touched when it is told to, and says when that is done: by a child that
// it starts only then, and that has ended by the time it answers. (Threads are counted alike, but
// ThreadSanitizer wants none in a forked process.)
class Toucher {
 public:
  Toucher() {
    EXPECT_EQ(pipe(to_), 0);
    EXPECT_EQ(pipe(from_), 0);
    pid_ = fork();
    if (pid_ != 0) return;
    char byte;
    while (read(to_[0], &byte, 1) == 1 && byte == 't') {
      const pid_t child = fork();
      if (child == 0) {
        touch_fresh_pages(kPages);
        _exit(0);
      }
      waitpid(child, nullptr, 0);
      if (write(from_[1], &byte, 1) != 1) break;
    }
    _exit(0);
  }
  Toucher(const Toucher&) = delete;
  Toucher& operator=(const Toucher&) = delete;
  ~Toucher() {
    say('q');
    waitpid(pid_, nullptr, 0);
    for (int fd : {to_[0], to_[1], from_[0], from_[1]}) close(fd);
  }
  pid_t pid() const { return pid_; }
  void touch() {
    say('t');
    char byte;
    EXPECT_EQ(read(from_[0], &byte, 1), 1);
  }

 private:
  void say(char byte) { EXPECT_EQ(write(to_[1], &byte, 1), 1); }
  int to_[2] = {}, from_[2] = {};
  pid_t pid_ = -1;
};

TEST(PerfCounters, CountsAnotherProcessBetweenStartAndStopAlone) {
  Toucher toucher;
  PerfCounters counters = PerfCounters::open(toucher.pid());
  if (counters.missing().contains(Counter::page_faults)) {
    GTEST_SKIP() << counters.missing().at(Counter::page_faults);
  }
  toucher.touch();
  counters.start();
  toucher.touch();
  counters.stop();
  const CounterValues first = counters.read();
  ASSERT_TRUE(first.counted.contains(Counter::page_faults));
  const double faults = first.counted.at(Counter::page_faults);
  EXPECT_GE(faults, kPages);      // the child's own, though it has ended
  EXPECT_LT(faults, 2 * kPages);  // and not those before start()
  EXPECT_GT(first.counted.at(Counter::task_clock_ns), 0);
  toucher.touch();
  EXPECT_EQ(counters.read().counted.at(Counter::page_faults), faults) << "it was stopped";
  counters.start();
  toucher.touch();
  counters.stop();
  EXPECT_GE(counters.read().counted.at(Counter::page_faults), faults + kPages);
}

TEST(PerfCounters, HasEachCounterOrSaysWhyNot) {
  Toucher toucher;
  PerfCounters counters = PerfCounters::open(toucher.pid());
  counters.start();
  toucher.touch();
  counters.stop();
  const CounterValues values = counters.read();
  for (int i = 0; i < kCounterCount; ++i) {
    const auto counter = static_cast<Counter>(i);
    SCOPED_TRACE(enum_name(counter));
    EXPECT_NE(values.counted.contains(counter), values.missing.contains(counter));
  }
  if (values.counted.contains(Counter::instructions)) {
    EXPECT_GT(values.counted.at(Counter::instructions), kPages);
  }
}

TEST(PerfCounters, OfNobodyAreAllMissing) {
  const PerfCounters counters = PerfCounters::open(0x3fffffff);
  EXPECT_EQ(counters.missing().size(), static_cast<size_t>(kCounterCount));
  EXPECT_TRUE(counters.read().counted.empty());
}

TEST(PerfCounters, ACountSeenForAQuarterOfTheTimeIsFourTimesAsMuch) {
  EXPECT_EQ(scaled({.count = 100, .enabled_ns = 4000, .running_ns = 1000}), 400);
  EXPECT_EQ(scaled({.count = 100, .enabled_ns = 4000, .running_ns = 4000}), 100);
  EXPECT_FALSE(scaled({.count = 0, .enabled_ns = 4000, .running_ns = 0}));
}

TEST(PerfCounters, SayWhatToDoWhenTheyAreMissing) {
  struct Case {
    Counter counter;
    int error;
    CounterSupport support;
    const char* says;
  };
  const Case cases[] = {
      {Counter::cycles, ENOENT, {.processor_shown = false, .paranoid = 2}, "virtual machines"},
      {Counter::dtlb_misses, ENOENT, {.processor_shown = true, .paranoid = 2}, "does not count"},
      {Counter::cycles, EACCES, {.processor_shown = true, .paranoid = 4}, "paranoid=2"},
      {Counter::context_switches, EACCES, {.processor_shown = true, .paranoid = 2}, "paranoid=1"},
      {Counter::cycles, EPERM, {.processor_shown = true, .paranoid = 1}, "CAP_PERFMON"},
      {Counter::page_faults, ENOSYS, {}, "without perf events"},
      {Counter::page_faults, ESRCH, {}, "cannot be opened"},
  };
  for (const Case& each : cases) {
    SCOPED_TRACE(each.says);
    const std::string why = why_not(each.counter, each.error, each.support);
    EXPECT_NE(why.find(each.says), std::string::npos) << why;
  }
}

}  // namespace
}  // namespace ke::os
