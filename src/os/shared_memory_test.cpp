// SPDX-License-Identifier: Apache-2.0
#include "os/shared_memory.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace ke::os {
namespace {

FileDescriptor duplicate(int fd) { return FileDescriptor(fcntl(fd, F_DUPFD_CLOEXEC, 0)); }

TEST(SharedMemory, RoundsUpToWholePagesAndIsWritable) {
  SharedMemory memory = SharedMemory::create(5000).value();
  EXPECT_EQ(memory.size() % sysconf(_SC_PAGESIZE), 0);
  EXPECT_GE(memory.size(), 5000);
  std::memset(memory.data(), 7, static_cast<size_t>(memory.size()));
  EXPECT_EQ(memory.span(4999, 1)[0], std::byte{7});
  EXPECT_FALSE(SharedMemory::create(0).value().empty());
  EXPECT_NE(fcntl(memory.fd(), F_GETFD) & FD_CLOEXEC, 0);
}

TEST(SharedMemory, NobodyCanResizeIt) {
  const SharedMemory memory = SharedMemory::create(1 << 20).value();
  EXPECT_EQ(ftruncate(memory.fd(), 0), -1);
  EXPECT_EQ(errno, EPERM);
  EXPECT_EQ(ftruncate(memory.fd(), 1 << 21), -1);
}

TEST(SharedMemory, AfterTheSealOnlyTheOwnerWrites) {
  SharedMemory memory = SharedMemory::create(4096).value();
  ASSERT_TRUE(memory.seal_future_writes());
  memory.data()[0] = std::byte{42};  // the mapping from before still works
  EXPECT_EQ(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, memory.fd(), 0), MAP_FAILED);
  EXPECT_EQ(pwrite(memory.fd(), "x", 1, 0), -1);

  const FileDescriptor read_only = memory.reopen_read_only().value();
  EXPECT_EQ(fcntl(read_only.get(), F_GETFL) & O_ACCMODE, O_RDONLY);
  void* view = mmap(nullptr, 4096, PROT_READ, MAP_SHARED, read_only.get(), 0);
  ASSERT_NE(view, MAP_FAILED);
  EXPECT_EQ(static_cast<const std::byte*>(view)[0], std::byte{42});
  EXPECT_EQ(mprotect(view, 4096, PROT_READ | PROT_WRITE), -1);
  munmap(view, 4096);
  const std::string path = "/proc/self/fd/" + std::to_string(read_only.get());
  const FileDescriptor again(open(path.c_str(), O_RDWR | O_CLOEXEC));
  EXPECT_EQ(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, again.get(), 0), MAP_FAILED);
  EXPECT_EQ(fcntl(memory.fd(), F_ADD_SEALS, F_SEAL_WRITE), -1);  // no seal can be added
}

TEST(SharedMemory, AdoptsWhatAnotherProcessSent) {
  SharedMemory memory = SharedMemory::create(8192).value();
  memory.data()[8191] = std::byte{9};
  const SharedMemory same = SharedMemory::adopt(duplicate(memory.fd()), 8192).value();
  EXPECT_EQ(same.data()[8191], std::byte{9});
  same.data()[0] = std::byte{1};
  EXPECT_EQ(memory.data()[0], std::byte{1});

  ASSERT_TRUE(memory.seal_future_writes());
  const SharedMemory view = SharedMemory::adopt(memory.reopen_read_only().value(), 8192).value();
  EXPECT_EQ(view.data()[8191], std::byte{9});
}

TEST(SharedMemory, RefusesFilesThatCouldShrinkOrAreTooSmall) {
  FileDescriptor unsealed(memfd_create("x", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(ftruncate(unsealed.get(), 4096), 0);
  EXPECT_EQ(SharedMemory::adopt(std::move(unsealed), 4096).error().code, Errc::invalid);
  const SharedMemory small = SharedMemory::create(4096).value();
  EXPECT_EQ(SharedMemory::adopt(duplicate(small.fd()), 4097).error().message,
            "a received memory file holds 4096 bytes where 4097 are needed");
  EXPECT_FALSE(SharedMemory::adopt(FileDescriptor(open("/dev/null", O_RDONLY)), 0));
  EXPECT_FALSE(SharedMemory::adopt(FileDescriptor(), 1));
}

TEST(SharedMemory, MovesWithoutLosingTheMapping) {
  SharedMemory first = SharedMemory::create(4096).value();
  first.data()[3] = std::byte{5};
  SharedMemory second = std::move(first);
  EXPECT_EQ(second.data()[3], std::byte{5});
  second = SharedMemory::create(4096).value();
  EXPECT_EQ(second.data()[3], std::byte{0});
}

TEST(SharedMemoryDeathTest, SpanOutsideEndsTheProcess) {
  const SharedMemory memory = SharedMemory::create(4096).value();
  EXPECT_DEATH(memory.span(4000, 200), "broken assumption");
}

}  // namespace
}  // namespace ke::os
