// SPDX-License-Identifier: Apache-2.0
//
// The kernel's randomness, for seeds that nobody may guess (getrandom(2)).
#pragma once

#include <sys/random.h>

#include <cstdint>

#include "base/assert.hpp"

namespace ke::os {

inline uint64_t random_seed() {
  uint64_t seed = 0;
  KE_ASSERT(getrandom(&seed, sizeof seed, 0) == sizeof seed);
  return seed;
}

}  // namespace ke::os
