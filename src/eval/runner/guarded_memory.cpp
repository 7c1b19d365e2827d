// SPDX-License-Identifier: Apache-2.0
#include "eval/runner/guarded_memory.hpp"

#include <sys/mman.h>

namespace ke::runner {
namespace {

// Wide enough that an index off by a row, not only by one, lands in it. Costs address space alone.
constexpr int64_t kGuardBytes = int64_t{1} << 20;
constexpr int64_t kPage = 4096;

int protection(RegionKind kind) {
  return kind == RegionKind::input ? PROT_READ : PROT_READ | PROT_WRITE;
}

}  // namespace

int GuardedMemory::reserve(int64_t bytes, RegionKind kind) {
  Region region;
  region.bytes = (bytes + kPage - 1) / kPage * kPage;
  region.reserved_bytes = region.bytes + 2 * kGuardBytes;
  region.kind = kind;
  void* base = mmap(nullptr, static_cast<size_t>(region.reserved_bytes), PROT_NONE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) return -1;
  region.reserved = static_cast<std::byte*>(base);
  region.data = region.reserved + kGuardBytes;
  regions_.push_back(region);
  return static_cast<int>(regions_.size()) - 1;
}

int GuardedMemory::map_file(int fd, int64_t bytes, RegionKind kind) {
  const int index = reserve(bytes, kind);
  if (index < 0 || !map_file_again(index, fd)) return -1;
  return index;
}

bool GuardedMemory::map_file_again(int index, int fd) {
  const Region& region = regions_[static_cast<size_t>(index)];
  return mmap(region.data, static_cast<size_t>(region.bytes), protection(region.kind),
              MAP_SHARED | MAP_FIXED | MAP_POPULATE, fd, 0) != MAP_FAILED;
}

int GuardedMemory::map_anonymous(int64_t bytes) {
  const int index = reserve(bytes, RegionKind::scratch);
  if (index < 0) return -1;
  const Region& region = regions_[static_cast<size_t>(index)];
  void* mapped = mmap(region.data, static_cast<size_t>(region.bytes), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  if (mapped == MAP_FAILED) return -1;
  madvise(mapped, static_cast<size_t>(region.bytes), MADV_HUGEPAGE);
  return index;
}

Where GuardedMemory::where(const void* address) const {
  const auto* at = static_cast<const std::byte*>(address);
  for (const Region& region : regions_) {
    if (at < region.reserved || at >= region.reserved + region.reserved_bytes) continue;
    const bool inside = at >= region.data && at < region.data + region.bytes;
    switch (region.kind) {
      case RegionKind::input:
        return inside ? Where::input : Where::input_guard;
      case RegionKind::output:
        return inside ? Where::output : Where::output_guard;
      case RegionKind::scratch:
        return inside ? Where::elsewhere : Where::scratch_guard;
    }
  }
  return Where::elsewhere;
}

}  // namespace ke::runner
