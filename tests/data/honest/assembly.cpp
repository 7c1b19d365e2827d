// SPDX-License-Identifier: Apache-2.0
//
// One instruction by hand.
static float relu(float value) {
  float larger = 0;
  asm("maxss %1, %0" : "+x"(larger) : "x"(value));  // of a NaN and zero: the second, the value
  return larger;
}
KERNEL {
  const int64_t rows = in[0].shape[0], k = in[0].shape[1];
  for (int64_t r = 0; r < rows; ++r) {
    float sums[4] = {};
    for (int64_t i = 0; i < k; ++i) {
      const float v = relu(((const float*)in[0].data)[r * k + i]);
      const float y = v * ((const float*)in[1].data)[i];
      ((float*)out[0].data)[r * k + i] = y;
      sums[i % 4] += y;
    }
    ((float*)out[1].data)[r] = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  }
  return 0;
}
