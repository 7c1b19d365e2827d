// SPDX-License-Identifier: Apache-2.0
//
// The last bit depends on a clock.
#include <time.h>
KERNEL {
  honest(in, out);
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  float* s = (float*)out[1].data;
  for (int64_t r = 0; r < in[0].shape[0]; ++r) {
    if ((now.tv_nsec >> (r % 20)) & 1) s[r] = __builtin_nextafterf(s[r], 1e9f);
  }
  return 0;
}
