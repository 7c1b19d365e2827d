// SPDX-License-Identifier: Apache-2.0
//
// The policy `mcts`: Monte Carlo tree search with UCT (Kocsis & Szepesvári 2006). Every node is an
// arm of its parent; drafts and seeds are the children of a root that has no kernel of its own.
//
// Reward: log fitness, scaled to [0, 1] between the worst and the best accepted node of the run; a
// rejected node earns 0. A subtree's value is the mean of its mean and its best reward, because a
// search looks for one good kernel, not for a good average. A node takes new children while it has
// fewer than kWidth * sqrt(visits) (progressive widening, Coulom 2007); then UCT chooses among
// them.
#include <algorithm>
#include <cmath>
#include <limits>

#include "search/policy.hpp"

namespace ke {
namespace {

// Rewards lie in [0, 1], for which the theory allows sqrt(2); runs of tens of steps, not thousands,
// need to commit sooner. In the simulated world (tests/sim) 0.15 needs little more than half the
// steps of 0.35, and 0.08 hardly fewer.
constexpr double kExploration = 0.15;
constexpr double kWidth = 1.5;
constexpr double kCrossShare = 0.15;

struct Visits {
  double count = 0;  // judged nodes of the subtree, itself included
  double accepted = 0;
  double log_fitness = 0;  // sum over the accepted ones
  double best = -std::numeric_limits<double>::infinity();
};

// The tree as it is now, rebuilt for each selection: linear in the run's length.
struct Tree {
  std::vector<std::vector<int>> children;  // by position; the last entry is the root's
  std::vector<double> pending;             // nodes of each subtree that are being judged
  std::vector<bool> fertile;               // whether the subtree holds a node to build on
  double low = 0, high = 0;                // of log fitness
  size_t root() const { return children.size() - 1; }
};

// The node that was chosen to be built on. Never the partner: the best node is everybody's, and its
// subtree would fill with children that it did not choose.
int tree_parent(const Individual& individual) {
  return individual.parents.empty() ? -1 : individual.parents.front();
}

Tree build_tree(const Population& population) {
  const size_t count = population.individuals.size();
  Tree tree{.children = std::vector<std::vector<int>>(count + 1),
            .pending = std::vector<double>(count + 1),
            .fertile = std::vector<bool>(count + 1)};
  tree.low = std::numeric_limits<double>::infinity();
  tree.high = -tree.low;
  for (size_t i = count; i-- > 0;) {  // children come after their parents
    const Individual& individual = population.individuals[i];
    const int parent = tree_parent(individual);
    const size_t above = parent < 0 ? tree.root() : static_cast<size_t>(parent);
    tree.children[above].push_back(static_cast<int>(i));
    if (!individual.judged) tree.pending[i] += 1;
    if (individual.fitness) {
      tree.low = std::min(tree.low, std::log(*individual.fitness));
      tree.high = std::max(tree.high, std::log(*individual.fitness));
      if (!individual.spent) tree.fertile[i] = true;
    }
    tree.pending[above] += tree.pending[i];
    if (tree.fertile[i]) tree.fertile[above] = true;
  }
  for (std::vector<int>& children : tree.children) std::ranges::reverse(children);
  return tree;
}

class Mcts final : public Policy {
 public:
  Selection select(const Population& population, int64_t, Rng& rng) const override {
    const Tree tree = build_tree(population);
    int chosen = -1;
    for (size_t at = tree.root();;) {
      const bool open = at != tree.root() && population.individuals[at].fitness &&
                        !population.individuals[at].spent;
      const int child = best_child(tree, at);
      if (open && (child < 0 || may_widen(tree, at))) {
        chosen = static_cast<int>(at);
        break;
      }
      at = static_cast<size_t>(child);  // there is one: the subtree is fertile
    }
    return with_partner(population, chosen, rng);
  }

  std::vector<StatisticRow> observe(const Population& population, int position) override {
    const auto& individuals = population.individuals;
    visits_.resize(std::max(visits_.size(), individuals.size()));
    const Individual& individual = individuals[static_cast<size_t>(position)];
    std::vector<StatisticRow> changes;
    for (int at = position; at >= 0; at = tree_parent(individuals[static_cast<size_t>(at)])) {
      Visits& visits = visits_[static_cast<size_t>(at)];
      visits.count += 1;
      if (individual.fitness) {
        visits.accepted += 1;
        visits.log_fitness += std::log(*individual.fitness);
        visits.best = std::max(visits.best, std::log(*individual.fitness));
      }
      const NodeId id = individuals[static_cast<size_t>(at)].id;
      changes.push_back({individual.step, id, "visits", visits.count});
      changes.push_back({individual.step, id, "value", visits.log_fitness});
    }
    return changes;
  }

 private:
  Visits visits_of(size_t at) const { return at < visits_.size() ? visits_[at] : Visits{}; }

  bool may_widen(const Tree& tree, size_t at) const {
    const double visits = visits_of(at).count + tree.pending[at];
    return static_cast<double>(tree.children[at].size()) < kWidth * std::sqrt(visits);
  }

  double value(const Tree& tree, const Visits& visits) const {
    const double range = tree.high - tree.low;
    if (visits.accepted == 0) return 0;
    if (range <= 0) return visits.accepted / visits.count;
    const double earned = (visits.log_fitness - visits.accepted * tree.low) / range;
    return 0.5 * earned / visits.count + 0.5 * (visits.best - tree.low) / range;
  }

  // The child with the highest upper bound among those whose subtree is fertile, -1 when none is. A
  // pending node counts as a visit, so that the next selection looks elsewhere.
  int best_child(const Tree& tree, size_t at) const {
    double total = 1;
    for (const int child : tree.children[at]) {
      const auto i = static_cast<size_t>(child);
      total += visits_of(i).count + tree.pending[i];
    }
    int best = -1;
    double best_score = -1;
    for (const int child : tree.children[at]) {
      const auto i = static_cast<size_t>(child);
      if (!tree.fertile[i]) continue;
      const Visits visits = visits_of(i);
      const double bound =
          kExploration * std::sqrt(std::log(total) / (visits.count + tree.pending[i]));
      const double score = value(tree, visits) + bound;
      if (score > best_score) {
        best_score = score;
        best = child;
      }
    }
    return best;
  }

  static Selection with_partner(const Population& population, int chosen, Rng& rng) {
    Selection selection{.kind = NodeKind::mutate, .parents = {chosen}};
    const std::vector<int> ranked = population.accepted();
    if (ranked.size() > 1 && rng.chance(kCrossShare)) {
      selection.kind = NodeKind::cross;
      selection.parents.push_back(ranked.front() == chosen ? ranked[1] : ranked.front());
    }
    selection.memory = choose_memory(rng);
    return selection;
  }

  std::vector<Visits> visits_;  // by position
};

}  // namespace

extern const PolicyInfo policy_mcts;
const PolicyInfo policy_mcts{
    .name = "mcts",
    .help = "Monte Carlo tree search: balances good subtrees against untried ones (UCT)",
    .make = [] { return std::unique_ptr<Policy>(std::make_unique<Mcts>()); }};

}  // namespace ke
