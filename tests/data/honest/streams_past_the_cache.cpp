// SPDX-License-Identifier: Apache-2.0
//
// Stores that leave no trace in the caches, and a fence.
#include <emmintrin.h>
KERNEL {
  const int64_t rows = in[0].shape[0], k = in[0].shape[1];
  for (int64_t r = 0; r < rows; ++r) {
    float sums[4] = {};
    for (int64_t i = 0; i < k; ++i) {
      const float v = ((const float*)in[0].data)[r * k + i];
      const float y = (v < 0 ? 0 : v) * ((const float*)in[1].data)[i];
      int bits;
      __builtin_memcpy(&bits, &y, 4);
      _mm_stream_si32((int*)out[0].data + r * k + i, bits);
      sums[i % 4] += y;
    }
    ((float*)out[1].data)[r] = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  }
  _mm_sfence();
  return 0;
}
