// SPDX-License-Identifier: Apache-2.0
//
// What processes share of a device: its time (eval/timing_lock.hpp) and its memory.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <thread>

#include "eval/device/memory_share.hpp"
#include "eval/timing_lock.hpp"
#include "os/clock.hpp"
#include "os/file_system.hpp"

namespace ke {
namespace {

// Waits, for as long as a test may take, until what another thread does has happened.
template <class Condition>
bool happens(const Condition& condition) {
  os::SystemClock clock;
  for (int i = 0; i < 20'000 && !condition(); ++i) clock.sleep_for(std::chrono::milliseconds(1));
  return condition();
}

TEST(TimingLock, SharesAreHeldTogetherAndKeepTurnsWaiting) {
  const os::TemporaryDirectory folder = *os::TemporaryDirectory::create();
  const std::filesystem::path path = folder.path() / "lock";
  TimingLock first(path), second(path), third(path);
  auto one = first.share(), other = second.share();
  ASSERT_TRUE(one && other);
  EXPECT_FALSE(os::FileLock::is_held(path)) << "nobody has it for themselves";
  std::atomic<bool> measuring = false, shared = false;
  std::jthread measurer([&] {
    const auto turn = third.take_turn();
    measuring = true;
    EXPECT_FALSE(shared);
  });
  EXPECT_TRUE(happens([&] { return os::FileLock::is_held(path.string() + ".queue"); }));
  std::jthread late([&] {
    const auto share = first.share();
    shared = true;
    EXPECT_TRUE(measuring) << "whoever asked first had to wait";
  });
  EXPECT_FALSE(measuring);
  one->reset();
  other->reset();
  EXPECT_TRUE(happens([&] { return measuring && shared; }));
}

TEST(DeviceMemoryShare, WaitsForWhatOthersHold) {
  const os::TemporaryDirectory folder = *os::TemporaryDirectory::create();
  const std::filesystem::path path = folder.path() / "device";
  std::optional<DeviceMemoryShare> most = *DeviceMemoryShare::take(path, 60, 64);
  EXPECT_EQ(most->parts(), 30);
  const DeviceMemoryShare little = *DeviceMemoryShare::take(path, 1, 64);
  EXPECT_EQ(little.parts(), 1);
  std::atomic<int> parts = 0;
  std::jthread waiting([&] { parts = DeviceMemoryShare::take(path, 40, 64)->parts(); });
  std::this_thread::sleep_for(std::chrono::milliseconds(60));
  EXPECT_EQ(parts, 0);
  most.reset();
  EXPECT_TRUE(happens([&] { return parts == 20; }));
}

}  // namespace
}  // namespace ke
