// SPDX-License-Identifier: Apache-2.0
//
// Mappings between guard zones, inside a runner. A zone is address space that nothing may touch, so
// an access beyond a tensor's file faults, and the fault's address says which tensor it was near.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "eval/runner/protocol.hpp"

namespace ke::runner {

enum class RegionKind : uint8_t { input, output, scratch };

struct Region {
  std::byte* reserved = nullptr;  // first byte of the leading guard zone
  int64_t reserved_bytes = 0;
  std::byte* data = nullptr;  // the mapping between the zones
  int64_t bytes = 0;
  RegionKind kind = RegionKind::input;
};

// All regions of this runner. Not thread-safe; where() may be called from a signal handler.
class GuardedMemory {
 public:
  // Maps a whole file (inputs read-only, outputs read-write), prefaulted; -1 on failure.
  int map_file(int fd, int64_t bytes, RegionKind kind);
  // Puts another file of the same size in place of a region's: same address, new contents.
  bool map_file_again(int region, int fd);
  // Private zeroed memory, huge pages advised; -1 on failure.
  int map_anonymous(int64_t bytes);

  const Region& region(int index) const { return regions_[static_cast<size_t>(index)]; }
  Where where(const void* address) const;

 private:
  int reserve(int64_t bytes, RegionKind kind);
  std::vector<Region> regions_;
};

}  // namespace ke::runner
