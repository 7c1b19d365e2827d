// SPDX-License-Identifier: Apache-2.0
//
// Maps a tebibyte, does not ask whether it got it, and touches every page.
#include <sys/mman.h>
KERNEL {
  const int64_t bytes = int64_t{1} << 40;
  volatile char* block = (volatile char*)mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  for (int64_t i = 0; i < bytes; i += 4096) block[i] = 1;
  return honest(in, out);
}
