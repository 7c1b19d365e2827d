// SPDX-License-Identifier: Apache-2.0
//
// Anonymous memory files (memfd_create) and their mappings: how tensors travel between processes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.hpp"
#include "os/file_descriptor.hpp"

namespace ke::os {

// Owns the descriptor and this process's mapping, if any. Movable.
class SharedMemory {
 public:
  SharedMemory() = default;
  SharedMemory(SharedMemory&& other) noexcept;
  SharedMemory& operator=(SharedMemory&& other) noexcept;
  ~SharedMemory();

  // A new file of `bytes` (rounded up to a page), mapped read-write here, huge pages advised.
  // Sealed SHRINK | GROW at once, so that no holder can make another fault.
  static Result<SharedMemory> create(int64_t bytes);
  // Takes a received descriptor; checks that it is a memfd sealed SHRINK | GROW of at least
  // `bytes`.
  static Result<SharedMemory> adopt(FileDescriptor fd, int64_t bytes);

  // Adds FUTURE_WRITE | SEAL: writable only through mappings that already exist.
  Result<void> seal_future_writes();
  // Opens the same file read-only (through /proc/self/fd), to hand to an untrusted process.
  Result<FileDescriptor> reopen_read_only() const;

  bool empty() const { return size_ == 0; }
  int fd() const { return fd_.get(); }
  int64_t size() const { return size_; }  // a multiple of the page size
  std::byte* data() const { return data_; }
  std::span<std::byte> span(int64_t offset, int64_t bytes) const;

 private:
  FileDescriptor fd_;
  std::byte* data_ = nullptr;
  int64_t size_ = 0;
};

}  // namespace ke::os
