// SPDX-License-Identifier: Apache-2.0
// verdicts: wrong_output
// problem: product.py
// Operands of eleven bits with the range of single ones.
// ke:launch run grid=(128, 128) block=(16, 16) args=(in0, in1, out0)
static __device__ float narrowed(float value) {
  unsigned bits;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(value));
  return __uint_as_float(bits);
}

extern "C" __global__ void run(const float* a, const float* b, float* c) {
  const int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
  float sum = 0;
  for (int k = 0; k < 2048; ++k) {
    sum += narrowed(a[row * 2048 + k]) * narrowed(b[k * 2048 + column]);
  }
  c[row * 2048 + column] = sum;
}
