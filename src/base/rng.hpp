// SPDX-License-Identifier: Apache-2.0
//
// Our own small generator (xoshiro256**, Blackman & Vigna 2018, seeded by splitmix64), because
// std::*_distribution differs between libraries and would break replay. Streams are split by name,
// so adding a consumer does not shift the others.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace ke {

class Rng {
 public:
  explicit Rng(uint64_t seed);

  // An independent stream: same parent seed and same name give the same stream, whatever was drawn.
  Rng split(std::string_view name) const;

  uint64_t next();
  int64_t below(int64_t n);  // uniform in [0, n), n > 0
  double uniform();          // [0, 1)
  double normal();           // mean 0, variance 1 (Marsaglia polar)
  bool chance(double probability) { return uniform() < probability; }

  template <class T>
  const T& pick(const std::vector<T>& items) {
    return items[static_cast<size_t>(below(static_cast<int64_t>(items.size())))];
  }
  template <class T>
  void shuffle(std::vector<T>& items) {
    for (size_t i = items.size(); i > 1; --i) {
      std::swap(items[i - 1], items[static_cast<size_t>(below(static_cast<int64_t>(i)))]);
    }
  }

 private:
  uint64_t seed_;
  std::array<uint64_t, 4> state_;
};

}  // namespace ke
