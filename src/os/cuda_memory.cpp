// SPDX-License-Identifier: Apache-2.0
#include "os/cuda_memory.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace ke::os::cuda {
namespace {

// Unmapped space on either side is no more than this: a kernel that is off by more than 64 MiB is
// off by so much that the address is most likely nothing anyway.
constexpr int64_t kGuardBytesMax = int64_t{64} << 20;

Result<int64_t> granularity_of(const Driver& driver, const AllocationProperties& properties) {
  size_t granularity = 0;
  TRY(driver.check(driver.api().granularity(&granularity, &properties, 0),
                   "cuMemGetAllocationGranularity"));
  return static_cast<int64_t>(std::max<size_t>(granularity, 1));
}

int64_t round_up(int64_t bytes, int64_t step) { return (bytes + step - 1) / step * step; }

AllocationProperties properties_of(int ordinal, bool exportable) {
  AllocationProperties properties;
  properties.handle_types = exportable ? kPosixDescriptor : 0;
  properties.location.id = ordinal;
  return properties;
}

}  // namespace

Result<Allocation> Allocation::create(const Driver& driver, int ordinal, int64_t bytes,
                                      bool exportable) {
  const AllocationProperties properties = properties_of(ordinal, exportable);
  const int64_t whole =
      round_up(std::max<int64_t>(bytes, 1), TRY(granularity_of(driver, properties)));
  AllocationHandle handle = 0;
  const Status status =
      driver.api().memory_create(&handle, static_cast<size_t>(whole), &properties, 0);
  if (status == kOutOfMemory) {
    size_t left = 0, total = 0;
    (void)driver.api().memory_info(&left, &total);
    return Error{Errc::unavailable,
                 fmt::format("the device has too little memory: {} MiB more are needed and {} MiB "
                             "of {} are free",
                             whole >> 20, left >> 20, total >> 20)};
  }
  TRY(driver.check(status, "cuMemCreate"));
  return Allocation(&driver, handle, ordinal, whole);
}

Result<Allocation> Allocation::import(const Driver& driver, int ordinal, int descriptor,
                                      int64_t bytes) {
  const int64_t step = TRY(granularity_of(driver, properties_of(ordinal, true)));
  AllocationHandle handle = 0;
  // The interface takes the descriptor where it takes a pointer.
  void* value = reinterpret_cast<void*>(static_cast<intptr_t>(descriptor));
  TRY(driver.check(driver.api().memory_import(&handle, value, kPosixDescriptor),
                   "cuMemImportFromShareableHandle"));
  return Allocation(&driver, handle, ordinal, round_up(std::max<int64_t>(bytes, 1), step));
}

Allocation::~Allocation() {
  if (driver_ != nullptr) (void)driver_->api().memory_release(handle_);
}

Result<FileDescriptor> Allocation::export_descriptor() const {
  int descriptor = -1;
  TRY(driver_->check(driver_->api().memory_export(&descriptor, handle_, kPosixDescriptor, 0),
                     "cuMemExportToShareableHandle"));
  return FileDescriptor(descriptor);
}

Result<Mapping> Mapping::make(const Allocation& allocation, Access access) {
  const Driver& driver = *allocation.driver_;
  const int64_t bytes = allocation.bytes_;
  const int64_t step = TRY(granularity_of(driver, properties_of(allocation.ordinal_, true)));
  const int64_t guard = std::max(step, std::min(round_up(bytes, step), kGuardBytesMax));
  const int64_t reserved_bytes = bytes + 2 * guard;
  DevicePointer reserved = 0;
  TRY(driver.check(
      driver.api().address_reserve(&reserved, static_cast<size_t>(reserved_bytes), 0, 0, 0),
      "cuMemAddressReserve"));
  Mapping mapping(&driver, reserved, reserved_bytes);
  mapping.address_ = reserved + static_cast<DevicePointer>(guard);
  TRY(driver.check(driver.api().memory_map(mapping.address_, static_cast<size_t>(bytes), 0,
                                           allocation.handle_, 0),
                   "cuMemMap"));
  mapping.bytes_ = bytes;
  const AccessDescription wanted{.location = {.id = allocation.ordinal_},
                                 .flags = access == Access::read ? 1 : 3};
  TRY(driver.check(
      driver.api().memory_access(mapping.address_, static_cast<size_t>(bytes), &wanted, 1),
      "cuMemSetAccess"));
  return mapping;
}

Mapping::~Mapping() {
  if (driver_ == nullptr) return;
  if (bytes_ > 0) (void)driver_->api().memory_unmap(address_, static_cast<size_t>(bytes_));
  (void)driver_->api().address_free(reserved_, static_cast<size_t>(reserved_bytes_));
}

}  // namespace ke::os::cuda
