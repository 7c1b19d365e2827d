// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "propose/synth/genome.hpp"

namespace ke::synth {
namespace {

constexpr int kRandomSchedules = 24;

void sort_by_estimate(std::vector<Genome>& genomes) {
  std::ranges::stable_sort(genomes, {}, &Genome::estimate_ns);
}

// The same plan with contractions as ordinary reductions, for what a target's contraction refuses.
ir::Plan without_contractions(ir::Plan plan) {
  for (ir::KernelPlan& kernel : plan.kernels) {
    if (kernel.skeleton != ir::Skeleton::contract) continue;
    kernel.skeleton = ir::Skeleton::reduce;
    kernel.schedule.clear();
  }
  return plan;
}

// Legal plans one fusion move away from `base`, best estimate first.
std::vector<Genome> other_structures(const ProposalContext& context, const Genome& base) {
  std::vector<Genome> genomes;
  for (ir::Plan& neighbour : ir::fusion_neighbours(*context.program, base.plan)) {
    std::optional<Genome> genome = complete(context, std::move(neighbour));
    if (genome && genome->estimate_ns() < kHopeless * base.estimate_ns()) {
      genomes.push_back(std::move(*genome));
    }
  }
  sort_by_estimate(genomes);
  return genomes;
}

std::vector<Genome> random_schedules(const ProposalContext& context, const Genome& base, Rng& rng) {
  std::vector<Genome> genomes;
  for (int i = 0; i < kRandomSchedules; ++i) {
    ir::Plan plan = base.plan;
    for (size_t k = 0; k < plan.kernels.size(); ++k) {
      for (const ScheduleChoice& choice : base.choices[k]) {
        plan.kernels[k].schedule[choice.name] = rng.pick(choice.values);
      }
    }
    if (std::optional<Genome> genome = complete(context, std::move(plan))) {
      genomes.push_back(std::move(*genome));
    }
  }
  sort_by_estimate(genomes);
  return genomes;
}

// The first of the genomes that is new and printable.
Result<std::optional<Proposal>> first_new(const ProposalContext& context,
                                          const std::vector<Genome>& genomes,
                                          std::string_view what) {
  for (const Genome& genome : genomes) {
    std::optional<Proposal> proposal = TRY(
        print_new(context, genome, {}, fmt::format("draft: {}, {}", what, shape_of(genome.plan))));
    if (proposal) return proposal;
  }
  return std::optional<Proposal>();
}

}  // namespace

Result<std::optional<Proposal>> draft(const ProposalContext& context, Rng& rng) {
  std::vector<Genome> bases;
  const ir::Plan greedy = ir::fuse_greedily(*context.program);
  if (auto genome = complete(context, greedy)) bases.push_back(std::move(*genome));
  if (auto found = TRY(first_new(context, bases, "greedy fusion"))) return found;
  const ir::Plan plain = without_contractions(greedy);
  if (!(plain == greedy)) {
    if (auto genome = complete(context, plain)) {
      // Worth a draft of its own only where the contraction could not be printed.
      const bool printable =
          !bases.empty() &&
          context.target.print(*context.program, bases[0].kernels, context.machine).has_value();
      if (!printable) {
        bases = {std::move(*genome)};
        if (auto found = TRY(first_new(context, bases, "greedy fusion"))) return found;
      }
    }
  }
  if (bases.empty()) return std::optional<Proposal>();
  const std::vector<Genome> structures = other_structures(context, bases[0]);
  if (auto found = TRY(first_new(context, structures, "another fusion"))) return found;
  return first_new(context, random_schedules(context, bases[0], rng), "another schedule");
}

}  // namespace ke::synth
