// SPDX-License-Identifier: Apache-2.0
//
// Everything in double, rounded at the end.
KERNEL {
  const int64_t rows = in[0].shape[0], k = in[0].shape[1];
  for (int64_t r = 0; r < rows; ++r) {
    double sum = 0;
    for (int64_t i = 0; i < k; ++i) {
      const double v = ((const float*)in[0].data)[r * k + i];
      const double y = (v < 0 ? 0 : v) * (double)((const float*)in[1].data)[i];
      ((float*)out[0].data)[r * k + i] = (float)y;
      sum += y;
    }
    ((float*)out[1].data)[r] = (float)sum;
  }
  return 0;
}
