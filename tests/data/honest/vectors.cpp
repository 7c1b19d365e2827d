// SPDX-License-Identifier: Apache-2.0
//
// Compiler vectors, unaligned row starts.
typedef float v8 __attribute__((vector_size(32), aligned(4)));
KERNEL {
  const int64_t rows = in[0].shape[0], k = in[0].shape[1];
  const float* w = (const float*)in[1].data;
  for (int64_t r = 0; r < rows; ++r) {
    const float* x = (const float*)in[0].data + r * k;
    float* y = (float*)out[0].data + r * k;
    v8 sums = {};
    int64_t i = 0;
    for (; i + 8 <= k; i += 8) {
      const v8 v = *(const v8*)(x + i);
      const v8 product = (v < 0 ? v8{} : v) * *(const v8*)(w + i);
      *(v8*)(y + i) = product;
      sums += product;
    }
    float sum = 0;
    for (int j = 0; j < 8; ++j) sum += sums[j];
    for (; i < k; ++i) {
      y[i] = (x[i] < 0 ? 0 : x[i]) * w[i];
      sum += y[i];
    }
    ((float*)out[1].data)[r] = sum;
  }
  return 0;
}
