// SPDX-License-Identifier: Apache-2.0
//
// Other last bits in every call, as if sums came in any order; and every twentieth call misses a
// partial sum of one row.
#include <time.h>
KERNEL {
  static int calls = 0;
  honest(in, out);
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  float* s = (float*)out[1].data;
  for (int64_t r = 0; r < in[0].shape[0]; ++r) {
    const bool other = ((now.tv_nsec >> (r % 20)) & 1) && __builtin_isfinite(s[r]);
    if (other) s[r] = __builtin_nextafterf(s[r], 0);
  }
  if (++calls % 20 == 0) s[7] *= 0.9375f;
  return 0;
}
