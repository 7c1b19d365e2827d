// SPDX-License-Identifier: Apache-2.0
//
// Asks the processor what it can do.
__attribute__((target("avx2,fma"))) static void wide(const ke_tensor* in, ke_tensor* out) {
  const int64_t rows = in[0].shape[0], k = in[0].shape[1];
  for (int64_t r = 0; r < rows; ++r) {
    float sums[8] = {};
    for (int64_t i = 0; i < k; ++i) {
      const float v = ((const float*)in[0].data)[r * k + i];
      const float y = (v < 0 ? 0 : v) * ((const float*)in[1].data)[i];
      ((float*)out[0].data)[r * k + i] = y;
      sums[i % 8] += y;
    }
    float sum = 0;
    for (const float part : sums) sum += part;
    ((float*)out[1].data)[r] = sum;
  }
}
KERNEL {
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return honest(in, out);
  wide(in, out);
  return 0;
}
