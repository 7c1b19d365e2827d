// SPDX-License-Identifier: Apache-2.0
//
// Shares the steps of a run among proposers by what they earn: gain per second, where the gain of a
// step is how far it raised the best fitness, as a logarithm.
//
// Each arm keeps its gain and its seconds, both decayed by every observation, so that an arm that
// has run dry loses its lead. Choosing perturbs: an arm's score is (gain + prior * X) / (seconds +
// prior seconds) with X exponential of mean 1, an own draw an arm and choice. The prior is what the
// arms together earn in the prior seconds now, so the perturbation keeps pace with the gains. That
// is follow the perturbed leader (Kalai & Vempala 2005): unlike UCB it needs no bound on the gains,
// an arm that costs little is tried more often before anything is known, and none is forgotten.
#pragma once

#include <string>
#include <vector>

#include "base/rng.hpp"

namespace ke {

class Bandit {
 public:
  explicit Bandit(int arm_count);

  // Every arm once, most promising first; the caller takes the first that has an idea.
  std::vector<int> ranking(Rng& rng) const;

  // gain >= 0; seconds > 0, what the step cost in all.
  void observe(int arm, double gain, double seconds);

 private:
  struct Arm {
    double gain = 0;
    double seconds = 0;
  };
  std::vector<Arm> arms_;
};

}  // namespace ke
