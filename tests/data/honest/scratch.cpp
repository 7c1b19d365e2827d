// SPDX-License-Identifier: Apache-2.0
//
// Uses scratch memory to its last byte.
extern "C" int64_t ke_scratch_bytes_for(const ke_tensor* in, int32_t) {
  return in[0].shape[1] * 4;
}
KERNEL {
  const int64_t rows = in[0].shape[0], k = in[0].shape[1];
  float* row = (float*)ctx->scratch;
  for (int64_t r = 0; r < rows; ++r) {
    honest_row((const float*)in[0].data + r * k, (const float*)in[1].data, row,
               (float*)out[1].data + r, k);
    __builtin_memcpy((float*)out[0].data + r * k, row, k * 4);
  }
  return 0;
}
