// SPDX-License-Identifier: Apache-2.0
//
// Column by column, with the sums kept in the output.
KERNEL {
  const int64_t rows = in[0].shape[0], k = in[0].shape[1];
  float* s = (float*)out[1].data;
  for (int64_t r = 0; r < rows; ++r) s[r] = 0;
  for (int64_t i = 0; i < k; ++i) {
    for (int64_t r = 0; r < rows; ++r) {
      const float v = ((const float*)in[0].data)[r * k + i];
      const float y = (v < 0 ? 0 : v) * ((const float*)in[1].data)[i];
      ((float*)out[0].data)[r * k + i] = y;
      s[r] += y;
    }
  }
  return 0;
}
