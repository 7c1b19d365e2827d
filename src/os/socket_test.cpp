// SPDX-License-Identifier: Apache-2.0
#include "os/socket.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <thread>

namespace ke::os {
namespace {

using namespace std::chrono_literals;

TEST(Socket, CarriesBytesWithDescriptors) {
  auto [left, right] = make_socket_pair(SocketKind::packets).value();
  const FileDescriptor file(memfd_create("x", MFD_CLOEXEC));
  ASSERT_EQ(write(file.get(), "hello", 5), 5);
  const int descriptors[] = {file.get(), file.get()};
  ASSERT_TRUE(send_message(left.get(), "two files", descriptors, 1s));
  const std::optional<Message> message = receive_message(right.get(), 100, 1s).value();
  ASSERT_TRUE(message.has_value());
  EXPECT_EQ(message->bytes, "two files");
  ASSERT_EQ(message->descriptors.size(), 2U);
  EXPECT_NE(fcntl(message->descriptors[1].get(), F_GETFD) & FD_CLOEXEC, 0);
  char text[5];
  EXPECT_EQ(pread(message->descriptors[1].get(), text, 5, 0), 5);
  EXPECT_EQ(std::string(text, 5), "hello");
}

TEST(Socket, KeepsPacketsApart) {
  auto [left, right] = make_socket_pair(SocketKind::packets).value();
  ASSERT_TRUE(send_message(left.get(), "one", {}, 1s));
  ASSERT_TRUE(send_message(left.get(), "two", {}, 1s));
  EXPECT_EQ(receive_message(right.get(), 100, 1s).value()->bytes, "one");
  EXPECT_EQ(receive_message(right.get(), 100, 1s).value()->bytes, "two");
}

TEST(Socket, EndOfTheOtherSideIsData) {
  auto [left, right] = make_socket_pair(SocketKind::stream).value();
  ASSERT_TRUE(send_message(left.get(), "last", {}, 1s));
  left.reset();
  EXPECT_EQ(receive_message(right.get(), 100, 1s).value()->bytes, "last");
  EXPECT_FALSE(receive_message(right.get(), 100, 1s).value().has_value());
  EXPECT_EQ(send_message(right.get(), "x", {}, 1s).error().code, Errc::not_found);
}

TEST(Socket, GivesUpWhenNothingComesOrNothingIsTaken) {
  auto [left, right] = make_socket_pair(SocketKind::stream).value();
  EXPECT_EQ(receive_message(right.get(), 100, 1ms).error().code, Errc::timed_out);
  const std::string much(16 << 20, 'x');
  EXPECT_EQ(send_message(left.get(), much, {}, 5ms).error().code, Errc::timed_out);
}

TEST(Socket, RefusesPacketsThatAreTooLarge) {
  auto [left, right] = make_socket_pair(SocketKind::packets).value();
  ASSERT_TRUE(send_message(left.get(), "twelve bytes", {}, 1s));
  EXPECT_EQ(receive_message(right.get(), 5, 1s).error().code, Errc::invalid);
}

TEST(LineReader, SplitsAStreamAndKeepsDescriptorsWithTheirLine) {
  auto [left, right] = make_socket_pair(SocketKind::stream).value();
  const int descriptors[] = {STDERR_FILENO};
  ASSERT_TRUE(send_message(left.get(), "{\"a\":", {}, 1s));
  ASSERT_TRUE(send_message(left.get(), "1}\nsecond\n", descriptors, 1s));
  ASSERT_TRUE(send_message(left.get(), "half", {}, 1s));
  LineReader reader(right.get(), 100);
  const std::optional<Message> first = reader.next(1s).value();
  EXPECT_EQ(first->bytes, "{\"a\":1}");
  EXPECT_EQ(first->descriptors.size(), 1U);
  EXPECT_EQ(reader.next(1s).value()->bytes, "second");
  EXPECT_EQ(reader.next(1ms).error().code, Errc::timed_out);
  left.reset();
  EXPECT_EQ(reader.next(1s).error().message, "the other side ended in the middle of a line");
}

TEST(LineReader, RefusesAnEndlessLine) {
  auto [left, right] = make_socket_pair(SocketKind::stream).value();
  ASSERT_TRUE(send_message(left.get(), std::string(1000, 'x'), {}, 1s));
  LineReader reader(right.get(), 100);
  EXPECT_EQ(reader.next(1s).error().message, "a line is longer than 100 bytes");
}

TEST(Socket, PassesMoreThanItsBufferThroughAReader) {
  auto [left, right] = make_socket_pair(SocketKind::stream).value();
  const std::string much(3 << 20, 'y');
  std::thread sender([&, fd = left.get()] { EXPECT_TRUE(send_message(fd, much + "\n", {}, 10s)); });
  LineReader reader(right.get(), 4 << 20);
  EXPECT_EQ(reader.next(10s).value()->bytes.size(), much.size());
  sender.join();
}

}  // namespace
}  // namespace ke::os
