// SPDX-License-Identifier: Apache-2.0
#include "os/terminal.hpp"

#include <gtest/gtest.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <csignal>

#include "os/socket.hpp"

namespace ke::os {
namespace {

using namespace std::chrono_literals;

TEST(Terminal, KnowsItsWidth) {
  int master = -1, slave = -1;
  const winsize size{24, 91, 0, 0};
  ASSERT_EQ(openpty(&master, &slave, nullptr, nullptr, &size), 0);
  const FileDescriptor first(master), second(slave);
  EXPECT_TRUE(is_terminal(slave));
  EXPECT_EQ(terminal_width(slave), 91);
}

TEST(Terminal, APipeIsNone) {
  auto [left, right] = make_socket_pair(SocketKind::stream).value();
  EXPECT_FALSE(is_terminal(left.get()));
  EXPECT_FALSE(terminal_width(left.get()).has_value());
}

TEST(StopSignal, FirstSignalSetsTheFlagAndWakesWaiters) {
  const std::unique_ptr<StopSignal> stop = StopSignal::install().value();
  EXPECT_FALSE(stop->requested());
  EXPECT_FALSE(wait_readable(stop->fd(), 0ns).value());
  kill(getpid(), SIGINT);
  EXPECT_TRUE(wait_readable(stop->fd(), 5s).value());
  EXPECT_TRUE(stop->requested());
  EXPECT_TRUE(wait_readable(stop->fd(), 0ns).value());  // stays readable
}

TEST(StopSignal, TheSecondSignalEndsTheProcess) {
  EXPECT_EXIT(
      {
        const std::unique_ptr<StopSignal> stop = StopSignal::install().value();
        kill(getpid(), SIGTERM);
        if (!wait_readable(stop->fd(), 5s).value()) _exit(3);
        kill(getpid(), SIGTERM);
        while (true) pause();
      },
      testing::KilledBySignal(SIGTERM), "");
}

TEST(StopSignal, TheFakeStopsOnRequest) {
  const std::unique_ptr<StopSignal> stop = StopSignal::fake();
  EXPECT_FALSE(stop->requested());
  stop->request();
  EXPECT_TRUE(stop->requested());
  EXPECT_TRUE(wait_readable(stop->fd(), 0ns).value());
}

}  // namespace
}  // namespace ke::os
