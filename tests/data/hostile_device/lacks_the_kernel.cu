// SPDX-License-Identifier: Apache-2.0
// verdicts: compile_error
// A launch line for a kernel that there is not.
// ke:launch other grid=(1) block=(1) args=()
extern "C" __global__ void run(const float* x, const float* bias, float* y, long long n) {
  const long long i = blockIdx.x * 256LL + threadIdx.x;
  if (i < n) y[i] = x[i] * 2 + bias[i % 2048];
}
