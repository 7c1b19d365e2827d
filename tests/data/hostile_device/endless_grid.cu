// SPDX-License-Identifier: Apache-2.0
// verdicts: timed_out, compile_error, crashed
// More blocks than anybody will live to see.
// ke:launch run grid=(2147483647, 65535, 65535) block=(256) args=(in0, in1, out0, n)
extern "C" __global__ void run(const float* x, const float* bias, float* y, long long n) {
  const long long i = blockIdx.x * 256LL + threadIdx.x;
  if (i < n) y[i] = x[i] * 2 + bias[i % 2048];
  for (int k = 0; k < 1000; ++k) asm volatile("");
}
