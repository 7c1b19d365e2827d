// SPDX-License-Identifier: Apache-2.0
//
// All the right numbers, in another order.
KERNEL {
  const int64_t rows = in[0].shape[0], k = in[0].shape[1];
  for (int64_t r = 0; r < rows; ++r) {
    honest_row((const float*)in[0].data + (rows - 1 - r) * k, (const float*)in[1].data,
               (float*)out[0].data + r * k, (float*)out[1].data + r, k);
  }
  return 0;
}
