// SPDX-License-Identifier: Apache-2.0
//
// Sums backwards in double.
KERNEL {
  honest(in, out);
  const int64_t rows = in[0].shape[0], k = in[0].shape[1];
  for (int64_t r = 0; r < rows; ++r) {
    double sum = 0;
    for (int64_t i = k; i-- > 0;) sum += ((float*)out[0].data)[r * k + i];
    ((float*)out[1].data)[r] = (float)sum;
  }
  return 0;
}
