// SPDX-License-Identifier: Apache-2.0
// verdicts: compile_error
// Templates that never end.
// ke:launch run grid=(ceil_div(n, 256)) block=(256) args=(in0, in1, out0, n)
template <int kDepth>
struct Deep {
  static __device__ float value() {
    return Deep<kDepth * 2 + 1>::value() + Deep<kDepth * 2 + 2>::value();
  }
};
extern "C" __global__ void run(const float* x, const float* bias, float* y, long long n) {
  const long long i = blockIdx.x * 256LL + threadIdx.x;
  if (i < n) y[i] = x[i] * 2 + bias[i % 2048];
  if (n < 0) y[0] = Deep<0>::value();
}
