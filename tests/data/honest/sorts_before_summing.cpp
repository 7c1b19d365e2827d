// SPDX-License-Identifier: Apache-2.0
//
// Sums the smallest numbers first.
#include <algorithm>
#include <cmath>
#include <vector>
KERNEL {
  honest(in, out);
  const int64_t rows = in[0].shape[0], k = in[0].shape[1];
  for (int64_t r = 0; r < rows; ++r) {
    const float* y = (const float*)out[0].data + r * k;
    std::vector<float> sorted(y, y + k);
    std::sort(sorted.begin(), sorted.end(), [](float a, float b) {
      return std::fabs(a) < std::fabs(b) || (std::fabs(a) == std::fabs(b) && a < b);
    });
    float sum = 0;
    for (const float value : sorted) sum += value;
    ((float*)out[1].data)[r] = sum;
  }
  return 0;
}
