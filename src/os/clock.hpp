// SPDX-License-Identifier: Apache-2.0
//
// Time as a dependency: the engine asks a Clock, so that tests and replays need no waiting.
// Implementations are safe to call from many threads.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/units.hpp"

namespace ke::os {

class Clock {
 public:
  virtual ~Clock() = default;

  virtual Nanoseconds now() = 0;  // monotonic, from an arbitrary start
  virtual int64_t utc_ms() = 0;   // wall clock, milliseconds since 1970, for records
  virtual void sleep_until(Nanoseconds deadline) = 0;  // deadline by now(); returns at once if past

  void sleep_for(Nanoseconds duration) { sleep_until(now() + duration); }
};

class SystemClock final : public Clock {
 public:
  Nanoseconds now() override;  // CLOCK_MONOTONIC
  int64_t utc_ms() override;
  void sleep_until(Nanoseconds deadline) override;
};

// Stands still but for sleep_until and advance; wall time moves along with it.
class FakeClock final : public Clock {
 public:
  explicit FakeClock(int64_t start_utc_ms = 1'600'000'000'000) : start_utc_ms_(start_utc_ms) {}

  Nanoseconds now() override { return Nanoseconds{now_.load()}; }
  int64_t utc_ms() override { return start_utc_ms_ + now_.load() / 1'000'000; }
  void sleep_until(Nanoseconds deadline) override;
  void advance(Nanoseconds duration) { now_ += duration.count(); }

 private:
  int64_t start_utc_ms_;
  std::atomic<int64_t> now_{0};
};

}  // namespace ke::os
