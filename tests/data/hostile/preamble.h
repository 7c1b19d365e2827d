// SPDX-License-Identifier: Apache-2.0
//
// Put before every source of tests/data/hostile and tests/data/honest. The problem they all answer:
// y[r, k] = max(x[r, k], 0) * w[k] and s[r] = sum over k of y[r, k], in float32.
#include <kernelevolve/kernel.h>

static inline void honest_row(const float* x, const float* w, float* y, float* s, int64_t k) {
  float lanes[16] = {};
  for (int64_t i = 0; i < k; ++i) {
    y[i] = (x[i] < 0 ? 0 : x[i]) * w[i];
    lanes[i % 16] += y[i];
  }
  float sum = 0;
  for (int i = 0; i < 16; ++i) sum += lanes[i];
  *s = sum;
}

static inline int honest(const ke_tensor* in, ke_tensor* out) {
  const int64_t rows = in[0].shape[0], k = in[0].shape[1];
  for (int64_t r = 0; r < rows; ++r) {
    honest_row((const float*)in[0].data + r * k, (const float*)in[1].data,
               (float*)out[0].data + r * k, (float*)out[1].data + r, k);
  }
  return 0;
}

#define KERNEL                                                                               \
  extern "C" int ke_launch(const ke_tensor* in, int32_t n_in, ke_tensor* out, int32_t n_out, \
                           ke_context* ctx)
