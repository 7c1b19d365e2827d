// SPDX-License-Identifier: Apache-2.0
// verdicts: accepted, implausible_time
// command: bench
// Asks the L2 to keep its inputs. Never faster than the memory.
// ke:launch run grid=(ceil_div(n, 256)) block=(256) args=(in0, in1, out0, n)
extern "C" __global__ void run(const float* x, const float* bias, float* y, long long n) {
  const long long i = blockIdx.x * 256LL + threadIdx.x;
  if (i >= n) return;
  unsigned long long policy;
  float value;
  asm("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
  asm volatile("ld.global.L2::cache_hint.f32 %0, [%1], %2;"
               : "=f"(value)
               : "l"(x + i), "l"(policy));
  y[i] = value * 2 + bias[i % 2048];
}
