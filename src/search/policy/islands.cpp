// SPDX-License-Identifier: Apache-2.0
//
// The policy `islands`: an evolutionary search of several populations that rarely meet. Steps go to
// the islands in turn; a child lives where it was made. Within an island, parents are winners of
// small tournaments among its best kResidents; without that limit the pressure to improve would
// fade as a run grows. Every so often the best of each island also settles on the next one, in a
// ring.
#include <algorithm>

#include "search/policy.hpp"

namespace ke {
namespace {

constexpr int kIslands = 4;
constexpr int kTournament = 3;
constexpr size_t kResidents = 6;
constexpr double kCrossShare = 0.35;
constexpr int64_t kMigrationInterval = 16;  // judged nodes, all islands together

class Islands final : public Policy {
 public:
  Selection select(const Population& population, int64_t step, Rng& rng) const override {
    std::vector<int> locals = inhabitants(population, static_cast<int>(step % kIslands), true);
    if (locals.empty()) locals = population.fertile();  // a settler: adopts somebody's kernel
    if (locals.size() > kResidents) locals.resize(kResidents);
    Selection selection{.kind = NodeKind::mutate, .parents = {tournament(locals, rng)}};
    if (locals.size() > 1 && rng.chance(kCrossShare)) {
      std::erase(locals, selection.parents.front());
      selection.kind = NodeKind::cross;
      selection.parents.push_back(tournament(locals, rng));
      std::ranges::stable_sort(selection.parents, std::greater{}, [&](int i) {
        return *population.individuals[static_cast<size_t>(i)].fitness;
      });
    }
    selection.memory = choose_memory(rng);
    return selection;
  }

  // The statistic "island" is a set: bit i stands for island i.
  std::vector<StatisticRow> observe(const Population& population, int position) override {
    const auto at = static_cast<size_t>(position);
    homes_.resize(std::max(homes_.size(), at + 1));
    const Individual& individual = population.individuals[at];
    homes_[at] = 1u << (individual.step % kIslands);
    std::vector<StatisticRow> changes = {row(population, at, individual.step)};
    if (++judged_ % kMigrationInterval == 0) migrate(population, individual.step, changes);
    return changes;
  }

 private:
  StatisticRow row(const Population& population, size_t at, int64_t step) const {
    return {step, population.individuals[at].id, "island", static_cast<double>(homes_[at])};
  }

  // Positions that live on an island, best first.
  std::vector<int> inhabitants(const Population& population, int island, bool fertile) const {
    std::vector<int> found = fertile ? population.fertile() : population.accepted();
    std::erase_if(found, [&](int i) {
      const auto at = static_cast<size_t>(i);
      return at >= homes_.size() || (homes_[at] >> island & 1u) == 0;
    });
    return found;
  }

  void migrate(const Population& population, int64_t step, std::vector<StatisticRow>& changes) {
    std::vector<int> travellers;
    for (int island = 0; island < kIslands; ++island) {
      const std::vector<int> found = inhabitants(population, island, false);
      travellers.push_back(found.empty() ? -1 : found.front());
    }
    for (int island = 0; island < kIslands; ++island) {
      const int traveller = travellers[static_cast<size_t>(island)];
      if (traveller < 0) continue;
      const auto at = static_cast<size_t>(traveller);
      homes_[at] |= 1u << ((island + 1) % kIslands);
      changes.push_back(row(population, at, step));
    }
  }

  // `ranked` is best first, so the smallest of the drawn places wins.
  static int tournament(const std::vector<int>& ranked, Rng& rng) {
    int64_t winner = rng.below(static_cast<int64_t>(ranked.size()));
    for (int i = 1; i < kTournament; ++i) {
      winner = std::min(winner, rng.below(static_cast<int64_t>(ranked.size())));
    }
    return ranked[static_cast<size_t>(winner)];
  }

  std::vector<unsigned> homes_;  // by position, one bit an island
  int64_t judged_ = 0;
};

}  // namespace

extern const PolicyInfo policy_islands;
const PolicyInfo policy_islands{
    .name = "islands",
    .help = "evolves four populations that exchange their best in a ring",
    .make = [] { return std::unique_ptr<Policy>(std::make_unique<Islands>()); }};

}  // namespace ke
