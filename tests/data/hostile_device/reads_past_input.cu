// SPDX-License-Identifier: Apache-2.0
// verdicts: out_of_bounds, wrong_output, nondeterministic
// A result that depends on what lies behind an input.
// ke:launch run grid=(ceil_div(n, 256)) block=(256) args=(in0, in1, out0, n)
extern "C" __global__ void run(const float* x, const float* bias, float* y, long long n) {
  const long long i = blockIdx.x * 256LL + threadIdx.x;
  if (i < n) y[i] = x[i] * 2 + bias[i % 2048];
  if (i == 0) y[0] += x[n];
}
