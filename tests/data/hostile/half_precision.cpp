// SPDX-License-Identifier: Apache-2.0
//
// Computes with half-precision operands.
KERNEL {
  const int64_t rows = in[0].shape[0], k = in[0].shape[1];
  for (int64_t r = 0; r < rows; ++r) {
    float sum = 0;
    for (int64_t i = 0; i < k; ++i) {
      const _Float16 v = (_Float16)((const float*)in[0].data)[r * k + i];
      const _Float16 w = (_Float16)((const float*)in[1].data)[i];
      const float y = (v < 0 ? 0.0f : (float)v) * (float)w;
      ((float*)out[0].data)[r * k + i] = y;
      sum += y;
    }
    ((float*)out[1].data)[r] = sum;
  }
  return 0;
}
