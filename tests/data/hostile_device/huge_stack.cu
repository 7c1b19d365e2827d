// SPDX-License-Identifier: Apache-2.0
// verdicts: crashed, compile_error
// Half a megabyte of local memory for each thread.
// ke:launch run grid=(ceil_div(n, 256)) block=(256) args=(in0, in1, out0, n)
extern "C" __global__ void run(const float* x, const float* bias, float* y, long long n) {
  const long long i = blockIdx.x * 256LL + threadIdx.x;
  float room[1 << 17];
  for (int k = 0; k < 1 << 17; ++k) room[k] = x[(i + k) % n];
  if (i < n) y[i] = x[i] * 2 + bias[i % 2048];
  if (room[(i * 7919) % (1 << 17)] == 1e35f) y[0] = room[i % 77];
}
