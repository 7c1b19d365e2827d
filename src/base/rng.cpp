// SPDX-License-Identifier: Apache-2.0
#include "base/rng.hpp"

#include <bit>
#include <cmath>

#include "base/assert.hpp"

namespace ke {
namespace {

uint64_t splitmix64(uint64_t& state) {
  uint64_t z = (state += 0x9e3779b97f4a7c15ULL);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

}  // namespace

Rng::Rng(uint64_t seed) : seed_(seed), state_{} {
  uint64_t mixer = seed;
  for (uint64_t& word : state_) word = splitmix64(mixer);
}

Rng Rng::split(std::string_view name) const {
  uint64_t hash = 0xcbf29ce484222325ULL ^ seed_;  // FNV-1a over the name, keyed by the seed
  for (const char c : name) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3ULL;
  return Rng(splitmix64(hash));
}

uint64_t Rng::next() {
  const uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
  const uint64_t shifted = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= shifted;
  state_[3] = std::rotl(state_[3], 45);
  return result;
}

int64_t Rng::below(int64_t n) {
  KE_ASSERT(n > 0);
  const auto bound = static_cast<uint64_t>(n);
  const uint64_t limit = UINT64_MAX - UINT64_MAX % bound;
  uint64_t draw = next();
  while (draw >= limit) draw = next();
  return static_cast<int64_t>(draw % bound);
}

double Rng::uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }

double Rng::normal() {
  for (;;) {
    const double u = 2 * uniform() - 1;
    const double v = 2 * uniform() - 1;
    const double s = u * u + v * v;
    if (s > 0 && s < 1) return u * std::sqrt(-2 * std::log(s) / s);
  }
}

}  // namespace ke
