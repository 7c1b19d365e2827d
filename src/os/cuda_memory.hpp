// SPDX-License-Identifier: Apache-2.0
//
// Device memory that travels between processes as a file descriptor and is mapped between stretches
// of address space that nothing is mapped to (DESIGN D2): an access beyond it is an illegal
// address, and so is a write where it was mapped for reading.
#pragma once

#include <cstdint>
#include <utility>

#include "base/result.hpp"
#include "os/cuda_driver.hpp"
#include "os/file_descriptor.hpp"

namespace ke::os::cuda {

enum class Access : uint8_t { read, read_write };

// Physical memory of one device. Mappings keep it alive after the object has ended.
class Allocation {
 public:
  // Rounded up to what the device allocates in. Errc::unavailable when there is too little memory:
  // the sentence says how much is needed and how much is free.
  static Result<Allocation> create(const Driver& driver, int ordinal, int64_t bytes,
                                   bool exportable);
  // From a descriptor that another process exported; the descriptor stays the caller's.
  static Result<Allocation> import(const Driver& driver, int ordinal, int descriptor,
                                   int64_t bytes);
  Allocation(Allocation&& other) noexcept
      : driver_(std::exchange(other.driver_, nullptr)),
        handle_(other.handle_),
        ordinal_(other.ordinal_),
        bytes_(other.bytes_) {}
  Allocation& operator=(Allocation&&) = delete;
  ~Allocation();

  int64_t bytes() const { return bytes_; }
  Result<FileDescriptor> export_descriptor() const;

 private:
  friend class Mapping;
  Allocation(const Driver* driver, AllocationHandle handle, int ordinal, int64_t bytes)
      : driver_(driver), handle_(handle), ordinal_(ordinal), bytes_(bytes) {}
  const Driver* driver_;
  AllocationHandle handle_;
  int ordinal_;
  int64_t bytes_;
};

// The allocation at an address of its own, with at least as much unmapped space (and no less than
// the device's granularity) on either side, in this process.
class Mapping {
 public:
  static Result<Mapping> make(const Allocation& allocation, Access access);
  Mapping(Mapping&& other) noexcept
      : driver_(std::exchange(other.driver_, nullptr)),
        reserved_(other.reserved_),
        reserved_bytes_(other.reserved_bytes_),
        address_(other.address_),
        bytes_(other.bytes_) {}
  Mapping& operator=(Mapping&&) = delete;
  ~Mapping();

  DevicePointer address() const { return address_; }
  int64_t bytes() const { return bytes_; }

 private:
  Mapping(const Driver* driver, DevicePointer reserved, int64_t reserved_bytes)
      : driver_(driver), reserved_(reserved), reserved_bytes_(reserved_bytes) {}
  const Driver* driver_;
  DevicePointer reserved_;
  int64_t reserved_bytes_;
  DevicePointer address_ = 0;
  int64_t bytes_ = 0;  // 0 while nothing is mapped
};

}  // namespace ke::os::cuda
