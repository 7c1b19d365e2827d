// SPDX-License-Identifier: Apache-2.0
#include "os/clock.hpp"

#include <time.h>

#include <cerrno>

namespace ke::os {

namespace {

int64_t read_clock_ns(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

}  // namespace

Nanoseconds SystemClock::now() { return Nanoseconds{read_clock_ns(CLOCK_MONOTONIC)}; }

int64_t SystemClock::utc_ms() { return read_clock_ns(CLOCK_REALTIME) / 1'000'000; }

void SystemClock::sleep_until(Nanoseconds deadline) {
  if (deadline.count() <= 0) return;
  const timespec time{deadline.count() / 1'000'000'000, deadline.count() % 1'000'000'000};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, nullptr) == EINTR) {
  }
}

void FakeClock::sleep_until(Nanoseconds deadline) {
  int64_t now = now_.load();
  while (now < deadline.count() && !now_.compare_exchange_weak(now, deadline.count())) {
  }
}

}  // namespace ke::os
