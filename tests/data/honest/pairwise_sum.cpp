// SPDX-License-Identifier: Apache-2.0
//
// Sums by halves, recursively.
static float sum_of(const float* values, int64_t count) {
  if (count == 1) return values[0];
  return sum_of(values, count / 2) + sum_of(values + count / 2, count - count / 2);
}
KERNEL {
  honest(in, out);
  const int64_t rows = in[0].shape[0], k = in[0].shape[1];
  for (int64_t r = 0; r < rows; ++r) {
    ((float*)out[1].data)[r] = sum_of((const float*)out[0].data + r * k, k);
  }
  return 0;
}
