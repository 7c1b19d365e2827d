// SPDX-License-Identifier: Apache-2.0
//
// Reserves far more addresses than there is memory, and touches none.
#include <sys/mman.h>
KERNEL {
  const int64_t bytes = int64_t{1} << 36;
  void* block = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (block != MAP_FAILED) munmap(block, bytes);
  return honest(in, out);
}
