// SPDX-License-Identifier: Apache-2.0
#include "propose/bandit.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/assert.hpp"

namespace ke {
namespace {

constexpr double kDecay = 0.95;  // an observation of any arm: half-life of 14 steps
constexpr double kPriorSeconds = 1.0;
constexpr double kPriorGainMin = 0.02;  // in the prior seconds: before anything has gained

}  // namespace

Bandit::Bandit(int arm_count) : arms_(static_cast<size_t>(arm_count)) {}

std::vector<int> Bandit::ranking(Rng& rng) const {
  double gain = 0, seconds = kPriorSeconds;
  for (const Arm& arm : arms_) {
    gain += arm.gain;
    seconds += arm.seconds;
  }
  const double prior = std::max(kPriorGainMin, gain / seconds * kPriorSeconds);
  std::vector<double> scores;
  for (const Arm& arm : arms_) {
    const double exponential = -std::log(1 - rng.uniform());
    scores.push_back((arm.gain + prior * exponential) / (arm.seconds + kPriorSeconds));
  }
  std::vector<int> order(arms_.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::greater{},
                           [&](int arm) { return scores[static_cast<size_t>(arm)]; });
  return order;
}

void Bandit::observe(int arm, double gain, double seconds) {
  KE_ASSERT(gain >= 0 && seconds > 0);
  for (Arm& each : arms_) {
    each.gain *= kDecay;
    each.seconds *= kDecay;
  }
  Arm& chosen = arms_[static_cast<size_t>(arm)];
  chosen.gain += gain;
  chosen.seconds += seconds;
}

}  // namespace ke
