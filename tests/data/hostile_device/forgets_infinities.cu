// SPDX-License-Identifier: Apache-2.0
// verdicts: wrong_output
// Right for every finite number of moderate size.
// ke:launch run grid=(ceil_div(n, 256)) block=(256) args=(in0, in1, out0, n)
extern "C" __global__ void run(const float* x, const float* bias, float* y, long long n) {
  const long long i = blockIdx.x * 256LL + threadIdx.x;
  if (i < n) y[i] = fminf(fmaxf(x[i], -1e30f), 1e30f) * 2 + bias[i % 2048];
}
