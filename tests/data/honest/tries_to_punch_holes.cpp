// SPDX-License-Identifier: Apache-2.0
//
// Tries to take pages out of its inputs' files, which their mappings and seals refuse.
#include <sys/mman.h>
KERNEL {
  for (int i = 0; i < n_in; ++i) {
    void* page = (void*)((uintptr_t)in[i].data & ~4095ul);
    if (madvise(page, 4096, MADV_REMOVE) == 0) return 1;
  }
  return honest(in, out);
}
