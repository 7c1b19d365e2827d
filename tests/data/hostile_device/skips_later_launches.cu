// SPDX-License-Identifier: Apache-2.0
// verdicts: wrong_output
// command: bench
// Right for the first calls, then idle.
// ke:launch count grid=(1) block=(1) args=()
// ke:launch run grid=(ceil_div(n, 256)) block=(256) args=(in0, in1, out0, n)
__device__ int calls = 0;
extern "C" __global__ void count() { ++calls; }

extern "C" __global__ void run(const float* x, const float* bias, float* y, long long n) {
  const long long i = blockIdx.x * 256LL + threadIdx.x;
  if (calls > 24) return;
  if (i < n) y[i] = x[i] * 2 + bias[i % 2048];
}
