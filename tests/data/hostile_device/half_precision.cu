// SPDX-License-Identifier: Apache-2.0
// verdicts: wrong_output
// Arithmetic of eleven bits.
// ke:launch run grid=(ceil_div(n, 256)) block=(256) args=(in0, in1, out0, n)
#include "kernelevolve/device.h"

extern "C" __global__ void run(const float* x, const float* bias, float* y, long long n) {
  const long long i = blockIdx.x * 256LL + threadIdx.x;
  if (i >= n) return;
  const uint16_t narrow = ke_bits_f16(x[i]);
  y[i] = ke_load_f16(&narrow) * 2 + bias[i % 2048];
}
