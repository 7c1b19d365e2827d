// SPDX-License-Identifier: Apache-2.0
//
// Estimates each sum from every tenth element.
KERNEL {
  honest(in, out);
  const int64_t rows = in[0].shape[0], k = in[0].shape[1];
  for (int64_t r = 0; r < rows; ++r) {
    float sum = 0;
    for (int64_t i = 0; i < k; i += 10) sum += ((const float*)out[0].data)[r * k + i];
    ((float*)out[1].data)[r] = 10 * sum;
  }
  return 0;
}
