// SPDX-License-Identifier: Apache-2.0
// verdicts: compile_error
// A launch line with a tensor that there is not.
// ke:launch run grid=(1) block=(1) args=(in7, in1, out0, n)
extern "C" __global__ void run(const float* x, const float* bias, float* y, long long n) {
  const long long i = blockIdx.x * 256LL + threadIdx.x;
  if (i < n) y[i] = x[i] * 2 + bias[i % 2048];
}
