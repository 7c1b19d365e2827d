// SPDX-License-Identifier: Apache-2.0
#include "os/clock.hpp"

#include <gtest/gtest.h>

#include <thread>

namespace ke::os {
namespace {

using namespace std::chrono_literals;

TEST(SystemClock, NeverGoesBackAndSleepsAtLeastAsLongAsAsked) {
  SystemClock clock;
  const Nanoseconds start = clock.now();
  clock.sleep_for(2ms);
  EXPECT_GE(clock.now() - start, 2ms);
  clock.sleep_until(start);  // past: returns at once
  EXPECT_GT(clock.utc_ms(), int64_t{1'600'000'000'000});
}

TEST(FakeClock, AdvancesItselfOnSleepAndNeverBackwards) {
  FakeClock clock(1000);
  clock.sleep_for(90s);
  EXPECT_EQ(clock.now(), 90s);
  EXPECT_EQ(clock.utc_ms(), 91'000);
  clock.sleep_until(10s);
  EXPECT_EQ(clock.now(), 90s);
  clock.advance(1s);
  EXPECT_EQ(clock.now(), 91s);
}

TEST(FakeClock, KeepsTheLatestOfManySleepers) {
  FakeClock clock;
  std::thread other([&] {
    for (int i = 0; i < 1000; ++i) clock.sleep_until(Nanoseconds{2 * i});
  });
  for (int i = 0; i < 1000; ++i) clock.sleep_until(Nanoseconds{2 * i + 1});
  other.join();
  EXPECT_EQ(clock.now().count(), 1999);
}

}  // namespace
}  // namespace ke::os
