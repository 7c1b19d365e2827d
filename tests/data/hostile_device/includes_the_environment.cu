// SPDX-License-Identifier: Apache-2.0
// verdicts: compile_error
// Has the compiler read its own surroundings.
#include "/proc/self/environ"
// ke:launch run grid=(ceil_div(n, 256)) block=(256) args=(in0, in1, out0, n)
extern "C" __global__ void run(const float* x, const float* bias, float* y, long long n) {
  const long long i = blockIdx.x * 256LL + threadIdx.x;
  if (i < n) y[i] = x[i] * 2 + bias[i % 2048];
}
