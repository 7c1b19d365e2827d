// SPDX-License-Identifier: Apache-2.0
//
// A mebibyte on the stack, used at its far end.
KERNEL {
  const int64_t rows = in[0].shape[0], k = in[0].shape[1];
  float block[1 << 18];
  float* row = block + (1 << 18) - k;
  block[0] = 0;
  for (int64_t r = 0; r < rows; ++r) {
    honest_row((const float*)in[0].data + r * k, (const float*)in[1].data, row,
               (float*)out[1].data + r, k);
    __builtin_memcpy((float*)out[0].data + r * k, row, k * 4);
  }
  return 0;
}
