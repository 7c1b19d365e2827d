// SPDX-License-Identifier: Apache-2.0
//
// Prefetches far beyond its arrays, where nothing may be read.
KERNEL {
  const int64_t rows = in[0].shape[0], k = in[0].shape[1];
  for (int64_t r = 0; r < rows; ++r) {
    const float* x = (const float*)in[0].data + r * k;
    for (int64_t i = 0; i < k; i += 16) {
      __builtin_prefetch(x + i + (1 << 18));
      __builtin_prefetch((float*)out[0].data + r * k + i + (1 << 18), 1);
    }
    honest_row(x, (const float*)in[1].data, (float*)out[0].data + r * k,
               (float*)out[1].data + r, k);
  }
  return 0;
}
