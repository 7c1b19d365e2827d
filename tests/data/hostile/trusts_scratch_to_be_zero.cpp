// SPDX-License-Identifier: Apache-2.0
//
// Sums into scratch memory without clearing it: right in the first call alone.
extern "C" int64_t ke_scratch_bytes_for(const ke_tensor* in, int32_t) {
  return in[0].shape[0] * 4;
}
KERNEL {
  honest(in, out);
  float* sums = (float*)ctx->scratch;
  float* s = (float*)out[1].data;
  for (int64_t r = 0; r < in[0].shape[0]; ++r) {
    sums[r] += s[r];
    s[r] = sums[r];
  }
  return 0;
}
