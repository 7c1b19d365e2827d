// SPDX-License-Identifier: Apache-2.0
#include "propose/bandit.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace ke {
namespace {

// How often each arm comes first over `steps` steps, when arm i gains gains[i] in seconds[i].
std::vector<int> play(const std::vector<double>& gains, const std::vector<double>& seconds,
                      int steps, uint64_t seed) {
  Bandit bandit(static_cast<int>(gains.size()));
  std::vector<int> firsts(gains.size());
  Rng rng(seed);
  for (int step = 0; step < steps; ++step) {
    const auto arm = static_cast<size_t>(bandit.ranking(rng).front());
    ++firsts[arm];
    bandit.observe(static_cast<int>(arm), gains[arm], seconds[arm]);
  }
  return firsts;
}

TEST(Bandit, RanksEveryArmOnce) {
  Rng rng(1);
  std::vector<int> order = Bandit(4).ranking(rng);
  std::ranges::sort(order);
  EXPECT_EQ(order, (std::vector{0, 1, 2, 3}));
}

TEST(Bandit, FollowsGainPerSecondNotGain) {
  for (const double scale : {0.1, 1.0, 10.0}) {
    for (uint64_t seed = 1; seed <= 20; ++seed) {
      SCOPED_TRACE(testing::Message() << "gains times " << scale << ", seed " << seed);
      const std::vector<int> firsts = play({0.05 * scale, 0.10 * scale}, {0.3, 6.0}, 200, seed);
      EXPECT_GT(firsts[0], 150);
      EXPECT_GT(firsts[1], 0) << "the other one is still tried";
    }
  }
}

TEST(Bandit, LeavesAnArmThatHasRunDry) {
  Bandit bandit(2);
  Rng rng(5);
  for (int i = 0; i < 20; ++i) bandit.observe(0, 0.1, 0.5);
  int other = 0;
  for (int i = 0; i < 200; ++i) {
    const int arm = bandit.ranking(rng).front();
    other += arm;
    bandit.observe(arm, arm == 1 ? 0.02 : 0.0, 0.5);
  }
  EXPECT_GT(other, 120);
}

TEST(Bandit, SameSeedSameChoices) {
  EXPECT_EQ(play({0.1, 0.1, 0}, {1, 1, 1}, 100, 9), play({0.1, 0.1, 0}, {1, 1, 1}, 100, 9));
}

}  // namespace
}  // namespace ke
