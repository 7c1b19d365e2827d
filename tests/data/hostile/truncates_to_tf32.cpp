// SPDX-License-Identifier: Apache-2.0
//
// Cuts its inputs to the ten fraction bits that matrix units keep.
static float truncated(float value) {
  uint32_t bits;
  __builtin_memcpy(&bits, &value, 4);
  bits &= 0xffffe000u;
  __builtin_memcpy(&value, &bits, 4);
  return value;
}
KERNEL {
  const int64_t rows = in[0].shape[0], k = in[0].shape[1];
  for (int64_t r = 0; r < rows; ++r) {
    float sum = 0;
    for (int64_t i = 0; i < k; ++i) {
      const float v = truncated(((const float*)in[0].data)[r * k + i]);
      const float y = (v < 0 ? 0 : v) * truncated(((const float*)in[1].data)[i]);
      ((float*)out[0].data)[r * k + i] = y;
      sum += y;
    }
    ((float*)out[1].data)[r] = sum;
  }
  return 0;
}
