// SPDX-License-Identifier: Apache-2.0
// verdicts: out_of_bounds, wrong_output
// Right only if values that were expected lie between here and the next hole.
// ke:launch run grid=(ceil_div(n, 256)) block=(256) args=(in0, in1, out0, n)
extern "C" __global__ void run(const float* x, const float* bias, float* y, long long n) {
  const long long i = blockIdx.x * 256LL + threadIdx.x;
  if (i >= n) return;
  const float wanted = x[i] * 2 + bias[i % 2048];
  y[i] = 0;
  for (long long step = 1; step < 1 << 12; ++step) {
    if (y[i - step * (1LL << 19)] == wanted) y[i] = wanted;
  }
}
