// SPDX-License-Identifier: Apache-2.0
//
// One pass for the elements, another one for the sums.
KERNEL {
  const int64_t rows = in[0].shape[0], k = in[0].shape[1];
  const float* x = (const float*)in[0].data;
  const float* w = (const float*)in[1].data;
  for (int64_t i = 0; i < rows * k; ++i) {
    ((float*)out[0].data)[i] = (x[i] < 0 ? 0 : x[i]) * w[i % k];
  }
  for (int64_t r = 0; r < rows; ++r) {
    float sum = 0;
    for (int64_t i = 0; i < k; ++i) sum += (x[r * k + i] < 0 ? 0 : x[r * k + i]) * w[i];
    ((float*)out[1].data)[r] = sum;
  }
  return 0;
}
