// SPDX-License-Identifier: Apache-2.0
//
// See memfd_create(2) and fcntl(2) on file sealing.
#include "os/shared_memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>

#include "base/assert.hpp"
#include "os/file_system.hpp"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010  // Linux 5.1
#endif

namespace ke::os {

namespace {

constexpr int kSizeSeals = F_SEAL_SHRINK | F_SEAL_GROW;

int64_t round_up_to_page(int64_t bytes) {
  const int64_t page = sysconf(_SC_PAGESIZE);
  return std::max(page, (bytes + page - 1) / page * page);
}

// Read-write where the descriptor and the seals allow it, else read-only. Null on failure.
std::byte* map_file(int fd, int64_t bytes) {
  const auto size = static_cast<size_t>(bytes);
  void* address = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (address == MAP_FAILED && (errno == EACCES || errno == EPERM)) {
    address = mmap(nullptr, size, PROT_READ, MAP_SHARED, fd, 0);
  }
  if (address == MAP_FAILED) return nullptr;
  madvise(address, size, MADV_HUGEPAGE);  // a wish: without it everything still works
  return static_cast<std::byte*>(address);
}

}  // namespace

SharedMemory::SharedMemory(SharedMemory&& other) noexcept
    : fd_(std::move(other.fd_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

SharedMemory& SharedMemory::operator=(SharedMemory&& other) noexcept {
  if (this != &other) {
    if (data_ != nullptr) munmap(data_, static_cast<size_t>(size_));
    fd_ = std::move(other.fd_);
    data_ = std::exchange(other.data_, nullptr);
    size_ = std::exchange(other.size_, 0);
  }
  return *this;
}

SharedMemory::~SharedMemory() {
  if (data_ != nullptr) munmap(data_, static_cast<size_t>(size_));
}

Result<SharedMemory> SharedMemory::create(int64_t bytes) {
  KE_ASSERT(bytes >= 0);
  SharedMemory memory;
  const int64_t size = round_up_to_page(bytes);
  memory.fd_ = FileDescriptor(memfd_create("kernelevolve", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!memory.fd_.valid()) return system_error(errno, "create a memory file");
  if (ftruncate(memory.fd(), size) != 0) {
    return system_error(errno, "make a memory file of " + std::to_string(size) + " bytes");
  }
  if (fcntl(memory.fd(), F_ADD_SEALS, kSizeSeals) != 0) {
    return system_error(errno, "seal a memory file");
  }
  memory.data_ = map_file(memory.fd(), size);
  if (memory.data_ == nullptr) {
    return system_error(errno, "map a memory file of " + std::to_string(size) + " bytes");
  }
  memory.size_ = size;
  return memory;
}

Result<SharedMemory> SharedMemory::adopt(FileDescriptor fd, int64_t bytes) {
  KE_ASSERT(bytes >= 0);
  const int seals = fcntl(fd.get(), F_GET_SEALS);
  if (seals < 0) return Error{Errc::invalid, "a received descriptor is not a memory file"};
  if ((seals & kSizeSeals) != kSizeSeals) {
    return Error{Errc::invalid, "a received memory file is not sealed against resizing"};
  }
  struct stat status {};
  if (fstat(fd.get(), &status) != 0) return system_error(errno, "examine a memory file");
  if (status.st_size < std::max<int64_t>(bytes, 1)) {
    return Error{Errc::invalid, "a received memory file holds " + std::to_string(status.st_size) +
                                    " bytes where " + std::to_string(bytes) + " are needed"};
  }
  SharedMemory memory;
  memory.data_ = map_file(fd.get(), status.st_size);
  if (memory.data_ == nullptr) return system_error(errno, "map a received memory file");
  memory.size_ = status.st_size;
  memory.fd_ = std::move(fd);
  return memory;
}

Result<void> SharedMemory::seal_future_writes() {
  if (fcntl(fd(), F_ADD_SEALS, F_SEAL_FUTURE_WRITE | F_SEAL_SEAL) != 0) {
    return system_error(errno, "seal a memory file against writing");
  }
  return {};
}

Result<FileDescriptor> SharedMemory::reopen_read_only() const {
  const std::string path = "/proc/self/fd/" + std::to_string(fd());
  FileDescriptor read_only(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!read_only.valid()) return system_error(errno, "reopen a memory file read-only");
  return read_only;
}

std::span<std::byte> SharedMemory::span(int64_t offset, int64_t bytes) const {
  KE_ASSERT(offset >= 0 && bytes >= 0 && offset <= size_ && bytes <= size_ - offset);
  return {data_ + offset, static_cast<size_t>(bytes)};
}

}  // namespace ke::os
