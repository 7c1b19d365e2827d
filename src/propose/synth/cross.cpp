// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "propose/synth/genome.hpp"

namespace ke::synth {
namespace {

constexpr int kCrossTriesMax = 12;

// A kernel that both parents have (same stages, same skeleton) under different schedules.
struct Match {
  size_t mine = 0;
  const ir::Schedule* theirs = nullptr;
};

std::vector<Match> matches(const CaseGenome& mine, const CaseGenome& theirs) {
  std::vector<Match> found;
  for (size_t i = 0; i < mine.plan.kernels.size(); ++i) {
    const ir::KernelPlan& kernel = mine.plan.kernels[i];
    for (const ir::KernelPlan& other : theirs.plan.kernels) {
      if (other.skeleton == kernel.skeleton && other.stages == kernel.stages &&
          other.schedule != kernel.schedule) {
        found.push_back({i, &other.schedule});
      }
    }
  }
  return found;
}

// Each match whole with probability one half. A lone match would give one of the parents again, so
// there single decisions are mixed.
ir::Plan mix(const CaseGenome& genome, const std::vector<Match>& found, Rng& rng) {
  ir::Plan plan = genome.plan;
  for (const Match& match : found) {
    ir::Schedule& schedule = plan.kernels[match.mine].schedule;
    if (found.size() > 1) {
      if (rng.chance(0.5)) schedule = *match.theirs;
      continue;
    }
    for (auto& [name, value] : schedule) {
      const auto other = match.theirs->find(name);
      if (other != match.theirs->end() && rng.chance(0.5)) value = other->second;
    }
  }
  return plan;
}

// Where the parents' plans differ.
std::vector<size_t> differing(const Genome& mine, const Genome& theirs) {
  std::vector<size_t> found;
  for (size_t i = 0; i < mine.cases.size(); ++i) {
    if (!(mine.cases[i].plan == theirs.cases[i].plan)) found.push_back(i);
  }
  return found;
}

class Crossing {
 public:
  Crossing(const ProposalContext& context, const Genome& mine, const Genome& theirs)
      : context_(context), mine_(mine), theirs_(theirs), differing_(differing(mine, theirs)) {
    for (size_t i = 0; i < mine.cases.size(); ++i) {
      matches_.push_back(matches(mine.cases[i], theirs.cases[i]));
      if (!matches_.back().empty()) matching_.push_back(i);
    }
  }

  bool possible() const { return !matching_.empty() || whole_cases(); }

  std::optional<Genome> draw(Rng& rng) const {
    if (whole_cases() && (matching_.empty() || rng.chance(0.5))) return cases_of_both(rng);
    const size_t index = matching_.size() == 1 ? matching_[0] : rng.pick(matching_);
    std::optional<CaseGenome> child =
        complete(context_, context_.programs[index], mix(mine_.cases[index], matches_[index], rng));
    if (!child) return std::nullopt;
    return mine_.with(index, std::move(*child));
  }

 private:
  // One case that differs, taken whole, would give the other parent again.
  bool whole_cases() const { return differing_.size() > 1; }

  Genome cases_of_both(Rng& rng) const {
    Genome child = mine_;
    for (const size_t i : differing_) {
      if (rng.chance(0.5)) child.cases[i] = theirs_.cases[i];
    }
    return child;
  }

  const ProposalContext& context_;
  const Genome& mine_;
  const Genome& theirs_;
  std::vector<size_t> differing_;
  std::vector<std::vector<Match>> matches_;  // by case
  std::vector<size_t> matching_;             // cases that have some
};

}  // namespace

Result<std::optional<Proposal>> cross(const ProposalContext& context, Rng& rng) {
  const NodeRow& first = context.parents[0].node;
  const NodeRow& second = context.parents[1].node;
  const std::optional<Genome> mine = genome_of(context, first);
  const std::optional<Genome> theirs = genome_of(context, second);
  if (!mine || !theirs) return std::optional<Proposal>();
  const Crossing crossing(context, *mine, *theirs);
  if (!crossing.possible()) return std::optional<Proposal>();
  for (int i = 0; i < kCrossTriesMax; ++i) {
    const std::optional<Genome> child = crossing.draw(rng);
    if (!child) continue;
    auto proposal = TRY(
        print_new(context, *child, {first.id, second.id},
                  fmt::format("schedules of {} mixed with {}", first.id.value, second.id.value)));
    if (proposal) return proposal;
  }
  return std::optional<Proposal>();
}

}  // namespace ke::synth
