// SPDX-License-Identifier: Apache-2.0
//
// The order in which people count.
#pragma once

#include <algorithm>
#include <cctype>
#include <string>

namespace ke::app {

// "9_x" before "10_a": digits compare as numbers.
inline bool natural_less(const std::string& a, const std::string& b) {
  size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    if (std::isdigit(static_cast<unsigned char>(a[i])) &&
        std::isdigit(static_cast<unsigned char>(b[j]))) {
      const size_t ia = std::min(a.find_first_not_of("0123456789", i), a.size());
      const size_t jb = std::min(b.find_first_not_of("0123456789", j), b.size());
      const std::string x = a.substr(i, ia - i), y = b.substr(j, jb - j);
      if (x.size() != y.size()) return x.size() < y.size();
      if (x != y) return x < y;
      i = ia, j = jb;
    } else {
      if (a[i] != b[j]) return a[i] < b[j];
      ++i, ++j;
    }
  }
  return a.size() - i < b.size() - j;
}

}  // namespace ke::app
