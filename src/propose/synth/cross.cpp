// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "propose/synth/genome.hpp"

namespace ke::synth {
namespace {

constexpr int kTriesMax = 12;

// A kernel that both parents have (same stages, same skeleton) under different schedules.
struct Match {
  size_t mine = 0;
  const ir::Schedule* theirs = nullptr;
};

std::vector<Match> matches(const Genome& mine, const Genome& theirs) {
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
ir::Plan mix(const Genome& genome, const std::vector<Match>& found, Rng& rng) {
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

}  // namespace

Result<std::optional<Proposal>> cross(const ProposalContext& context, Rng& rng) {
  const NodeRow& first = context.parents[0].node;
  const NodeRow& second = context.parents[1].node;
  const std::optional<Genome> mine = genome_of(context, first);
  const std::optional<Genome> theirs = genome_of(context, second);
  if (!mine || !theirs) return std::optional<Proposal>();
  const std::vector<Match> found = matches(*mine, *theirs);
  if (found.empty()) return std::optional<Proposal>();
  for (int i = 0; i < kTriesMax; ++i) {
    const std::optional<Genome> child = complete(context, mix(*mine, found, rng));
    if (!child) continue;
    auto proposal = TRY(
        print_new(context, *child, {first.id, second.id},
                  fmt::format("schedules of {} mixed with {}", first.id.value, second.id.value)));
    if (proposal) return proposal;
  }
  return std::optional<Proposal>();
}

}  // namespace ke::synth
