// SPDX-License-Identifier: Apache-2.0
//
// Memory from the heap and from the system in every call, given back in every call.
#include <stdlib.h>
#include <sys/mman.h>
KERNEL {
  const int64_t rows = in[0].shape[0], k = in[0].shape[1], bytes = rows * k * 4;
  float* y = (float*)malloc(bytes);
  void* mapped = mmap(nullptr, rows * 4, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                      0);
  if (!y || mapped == MAP_FAILED) return 1;
  for (int64_t r = 0; r < rows; ++r) {
    honest_row((const float*)in[0].data + r * k, (const float*)in[1].data, y + r * k,
               (float*)mapped + r, k);
  }
  __builtin_memcpy(out[0].data, y, bytes);
  __builtin_memcpy(out[1].data, mapped, rows * 4);
  munmap(mapped, rows * 4);
  free(y);
  return 0;
}
