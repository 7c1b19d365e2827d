// SPDX-License-Identifier: Apache-2.0
//
// Unrolled by templates.
template <int n>
static inline void step(const float* x, const float* w, float* y, float* sums) {
  if constexpr (n > 0) {
    step<n - 1>(x, w, y, sums);
    y[n - 1] = (x[n - 1] < 0 ? 0 : x[n - 1]) * w[n - 1];
    sums[n - 1] += y[n - 1];
  }
}
KERNEL {
  const int64_t rows = in[0].shape[0], k = in[0].shape[1];
  const float* w = (const float*)in[1].data;
  for (int64_t r = 0; r < rows; ++r) {
    const float* x = (const float*)in[0].data + r * k;
    float* y = (float*)out[0].data + r * k;
    float sums[8] = {};
    int64_t i = 0;
    for (; i + 8 <= k; i += 8) step<8>(x + i, w + i, y + i, sums);
    for (; i < k; ++i) step<1>(x + i, w + i, y + i, sums);
    float sum = 0;
    for (const float part : sums) sum += part;
    ((float*)out[1].data)[r] = sum;
  }
  return 0;
}
