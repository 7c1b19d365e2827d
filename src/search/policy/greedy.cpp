// SPDX-License-Identifier: Apache-2.0
//
// The policy `greedy`: always builds on the best node that still has children to give; now and then
// crosses it with a runner-up.
#include <algorithm>

#include "search/policy.hpp"

namespace ke {
namespace {

constexpr double kCrossShare = 0.15;
constexpr int64_t kRunnersUp = 4;

class Greedy final : public Policy {
 public:
  Selection select(const Population& population, int64_t, Rng& rng) const override {
    const std::vector<int> fertile = population.fertile();
    Selection selection{.kind = NodeKind::mutate, .parents = {fertile.front()}};
    const std::vector<int> ranked = population.accepted();
    const auto others = std::min<int64_t>(kRunnersUp, static_cast<int64_t>(ranked.size()) - 1);
    if (others > 0 && rng.chance(kCrossShare)) {
      selection.kind = NodeKind::cross;
      selection.parents = {ranked[0], ranked[static_cast<size_t>(1 + rng.below(others))]};
    }
    selection.memory = choose_memory(rng);
    return selection;
  }

  std::vector<StatisticRow> observe(const Population& population, int position) override {
    const Individual& individual = population.individuals[static_cast<size_t>(position)];
    std::vector<StatisticRow> changes;
    for (const int parent : individual.parents) {
      visits_.resize(std::max(visits_.size(), static_cast<size_t>(parent) + 1));
      const int64_t visits = ++visits_[static_cast<size_t>(parent)];
      changes.push_back({individual.step, population.individuals[static_cast<size_t>(parent)].id,
                         "visits", static_cast<double>(visits)});
    }
    return changes;
  }

 private:
  std::vector<int64_t> visits_;  // children judged, by position; for the record alone
};

}  // namespace

extern const PolicyInfo policy_greedy;
const PolicyInfo policy_greedy{
    .name = "greedy", .help = "builds on the best node found so far", .make = [] {
      return std::unique_ptr<Policy>(std::make_unique<Greedy>());
    }};

}  // namespace ke
