// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "propose/synth/genome.hpp"

namespace ke::synth {
namespace {

constexpr int kRandomSchedules = 24;

void sort_by_cost(std::vector<Genome>& genomes) {
  std::ranges::stable_sort(genomes, {}, &Genome::cost);
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

bool printable(const ProposalContext& context, const ir::Program& program,
               const CaseGenome& genome) {
  return context.target.print(program, genome.kernels, context.machine).has_value();
}

// Greedy fusion; without contractions only where the target cannot print them.
std::optional<CaseGenome> base_of(const ProposalContext& context, const ir::Program& program) {
  const ir::Plan greedy = ir::fuse_greedily(program);
  std::optional<CaseGenome> base = complete(context, program, greedy);
  const ir::Plan plain = without_contractions(greedy);
  if (plain == greedy || (base && printable(context, program, *base))) return base;
  std::optional<CaseGenome> other = complete(context, program, plain);
  return other ? other : base;
}

// Legal plans one fusion move away from `base`, best estimate first.
std::vector<Genome> other_structures(const ProposalContext& context, const Genome& base) {
  std::vector<Genome> genomes;
  for (const size_t i : cases_to_vary(context)) {
    const ir::Program& program = context.programs[i];
    const CaseGenome& of_case = base.cases[i];
    for (ir::Plan& neighbour : ir::fusion_neighbours(program, of_case.plan)) {
      std::optional<CaseGenome> genome = complete(context, program, std::move(neighbour));
      if (genome && genome->estimate_ns() < kHopeless * of_case.estimate_ns()) {
        genomes.push_back(base.with(i, std::move(*genome)));
      }
    }
  }
  sort_by_cost(genomes);
  return genomes;
}

std::optional<CaseGenome> random_schedule(const ProposalContext& context,
                                          const ir::Program& program, const CaseGenome& base,
                                          Rng& rng) {
  ir::Plan plan = base.plan;
  for (size_t k = 0; k < plan.kernels.size(); ++k) {
    for (const ScheduleChoice& choice : base.choices[k]) {
      plan.kernels[k].schedule[choice.name] = rng.pick(choice.values);
    }
  }
  return complete(context, program, std::move(plan));
}

std::vector<Genome> random_schedules(const ProposalContext& context, const Genome& base, Rng& rng) {
  std::vector<Genome> genomes;
  const std::vector<size_t> varied = cases_to_vary(context);
  for (size_t n = 0; n < kRandomSchedules && !varied.empty(); ++n) {
    const size_t i = varied[n % varied.size()];
    auto one = random_schedule(context, context.programs[i], base.cases[i], rng);
    if (one) genomes.push_back(base.with(i, std::move(*one)));
  }
  sort_by_cost(genomes);
  return genomes;
}

// The first of the genomes that is new and printable.
Result<std::optional<Proposal>> first_new(const ProposalContext& context,
                                          const std::vector<Genome>& genomes,
                                          std::string_view what) {
  for (const Genome& genome : genomes) {
    std::optional<Proposal> proposal = TRY(
        print_new(context, genome, {}, fmt::format("draft: {}, {}", what, shape_of(genome))));
    if (proposal) return proposal;
  }
  return std::optional<Proposal>();
}

}  // namespace

Result<std::optional<Proposal>> draft(const ProposalContext& context, Rng& rng) {
  Genome base;
  for (const ir::Program& program : context.programs) {
    std::optional<CaseGenome> genome = base_of(context, program);
    if (!genome) return std::optional<Proposal>();
    base.cases.push_back(std::move(*genome));
  }
  if (auto found = TRY(first_new(context, {base}, "greedy fusion"))) return found;
  const std::vector<Genome> structures = other_structures(context, base);
  if (auto found = TRY(first_new(context, structures, "another fusion"))) return found;
  return first_new(context, random_schedules(context, base, rng), "another schedule");
}

}  // namespace ke::synth
