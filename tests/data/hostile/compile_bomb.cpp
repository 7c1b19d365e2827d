// SPDX-License-Identifier: Apache-2.0
//
// Keeps the compiler busy until it loses patience, or the judge does.
constexpr uint64_t slow() {
  uint64_t sum = 0;
  for (uint64_t i = 0; i < 200000; ++i) {
    for (uint64_t j = 0; j < 200000; ++j) sum ^= i * j;
  }
  return sum;
}
constexpr uint64_t value = slow();
KERNEL { return value == 0; }
