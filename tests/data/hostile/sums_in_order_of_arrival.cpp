// SPDX-License-Identifier: Apache-2.0
//
// Partial sums are added in the order in which they would arrive from threads, drawn from a clock:
// right, and other last bits in every call.
#include <time.h>
KERNEL {
  const int64_t rows = in[0].shape[0], k = in[0].shape[1];
  honest(in, out);
  const float* y = (const float*)out[0].data;
  float* s = (float*)out[1].data;
  for (int64_t r = 0; r < rows; ++r) {
    float partial[16] = {};
    for (int64_t i = 0; i < k; ++i) partial[i * 16 / k] += y[r * k + i];
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    const int64_t first = now.tv_nsec / 7 % 16, step = 1 + 2 * (now.tv_nsec / 113 % 8);
    float sum = 0;
    for (int64_t i = 0; i < 16; ++i) sum += partial[(first + i * step) % 16];
    s[r] = sum;
  }
  return 0;
}
