// SPDX-License-Identifier: Apache-2.0
//
// Takes another path where a row begins between two vectors.
static void four_at_a_time(const float* x, const float* w, float* y, float* s, int64_t k) {
  float sums[4] = {};
  int64_t i = 0;
  for (; i + 4 <= k; i += 4) {
    for (int64_t j = 0; j < 4; ++j) {
      y[i + j] = (x[i + j] < 0 ? 0 : x[i + j]) * w[i + j];
      sums[j] += y[i + j];
    }
  }
  float sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  for (; i < k; ++i) {
    y[i] = (x[i] < 0 ? 0 : x[i]) * w[i];
    sum += y[i];
  }
  *s = sum;
}
KERNEL {
  const int64_t rows = in[0].shape[0], k = in[0].shape[1];
  for (int64_t r = 0; r < rows; ++r) {
    const float* x = (const float*)in[0].data + r * k;
    const auto row = (uintptr_t)x % 16 == 0 ? four_at_a_time : honest_row;
    row(x, (const float*)in[1].data, (float*)out[0].data + r * k, (float*)out[1].data + r, k);
  }
  return 0;
}
