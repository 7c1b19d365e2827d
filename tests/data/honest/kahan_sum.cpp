// SPDX-License-Identifier: Apache-2.0
//
// Sums with compensation.
KERNEL {
  honest(in, out);
  const int64_t rows = in[0].shape[0], k = in[0].shape[1];
  for (int64_t r = 0; r < rows; ++r) {
    float sum = 0, lost = 0;
    for (int64_t i = 0; i < k; ++i) {
      const float value = ((const float*)out[0].data)[r * k + i] - lost;
      const float next = sum + value;
      lost = (next - sum) - value;
      sum = next;
    }
    ((float*)out[1].data)[r] = sum;
  }
  return 0;
}
