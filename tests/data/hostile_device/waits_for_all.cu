// SPDX-License-Identifier: Apache-2.0
// verdicts: timed_out
// Each block waits for all others, more than a device holds at once.
// ke:launch run grid=(ceil_div(n, 256)) block=(256) args=(in0, in1, out0, n)
__device__ unsigned arrived = 0;
extern "C" __global__ void run(const float* x, const float* bias, float* y, long long n) {
  const long long i = blockIdx.x * 256LL + threadIdx.x;
  if (i < n) y[i] = x[i] * 2 + bias[i % 2048];
  __syncthreads();
  if (threadIdx.x == 0) {
    atomicAdd(&arrived, 1u);
    while (*(volatile unsigned*)&arrived % gridDim.x != 0) {
    }
  }
}
