// SPDX-License-Identifier: Apache-2.0
//
// A static buffer that every call overwrites before it reads it.
static float buffer[1 << 16];
KERNEL {
  const int64_t rows = in[0].shape[0], k = in[0].shape[1];
  for (int64_t r = 0; r < rows; ++r) {
    honest_row((const float*)in[0].data + r * k, (const float*)in[1].data, buffer + r * k,
               (float*)out[1].data + r, k);
  }
  __builtin_memcpy(out[0].data, buffer, rows * k * 4);
  return 0;
}
