// SPDX-License-Identifier: Apache-2.0
//
// Fills a gibibyte of shared memory, which the limit on private data does not count.
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
static bool done;
KERNEL {
  for (int i = 0; i < 16 && !done; ++i) {
    void* block = mmap(nullptr, 64 << 20, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
                       0);
    if (block == MAP_FAILED) abort();
    memset(block, 1, 64 << 20);
  }
  done = true;
  return honest(in, out);
}
