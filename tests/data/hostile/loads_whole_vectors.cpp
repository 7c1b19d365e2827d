// SPDX-License-Identifier: Apache-2.0
//
// Reads eight elements at a time, past the end of the last row; what is too much is not used.
typedef float v8 __attribute__((vector_size(32), aligned(4)));
KERNEL {
  honest(in, out);
  const int64_t rows = in[0].shape[0], k = in[0].shape[1];
  float largest = 0;
  for (int64_t r = 0; r < rows; ++r) {
    const float* x = (const float*)in[0].data + r * k;
    for (int64_t i = 0; i < k; i += 8) {
      const v8 v = *(const volatile v8*)(x + i);
      for (int64_t j = 0; j < 8 && i + j < k; ++j) largest = v[j] > largest ? v[j] : largest;
    }
  }
  return largest < 0;
}
