// SPDX-License-Identifier: Apache-2.0
//
// A thread of its own, joined before it returns.
#include <thread>
KERNEL {
  const int64_t rows = in[0].shape[0], k = in[0].shape[1];
  const auto work = [=](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      honest_row((const float*)in[0].data + r * k, (const float*)in[1].data,
                 (float*)out[0].data + r * k, (float*)out[1].data + r, k);
    }
  };
  std::thread other(work, rows / 2, rows);
  work(0, rows / 2);
  other.join();
  return 0;
}
