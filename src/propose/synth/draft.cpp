// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "graph/source.hpp"
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

// The plan with the values that round least, of decisions where that differs.
std::optional<CaseGenome> rounding_least(const ProposalContext& context, const ir::Program& program,
                                         CaseGenome genome) {
  bool changed = false;
  for (size_t k = 0; k < genome.choices.size(); ++k) {
    for (const ScheduleChoice& choice : genome.choices[k]) {
      if (!choice.rounds_least) continue;
      int64_t& held = genome.plan.kernels[k].schedule[choice.name];
      changed = changed || held != *choice.rounds_least;
      held = *choice.rounds_least;
    }
  }
  if (!changed) return genome;
  return complete(context, program, std::move(genome.plan));
}

Genome rounding_least(const ProposalContext& context, const Genome& genome) {
  Genome least = genome;
  for (size_t i = 0; i < least.cases.size(); ++i) {
    auto one = rounding_least(context, context.programs[i], genome.cases[i]);
    if (one) least.cases[i] = std::move(*one);
  }
  return least;
}

// What this run's judge said of the genome's source; nothing while it has not.
Result<std::optional<Verdict>> verdict_of(const ProposalContext& context, const Genome& genome) {
  const Result<std::string> source = print(context, genome);
  if (!source) return std::optional<Verdict>();
  const Digest digest = normalised_digest(*source);
  for (const NodeRow& row : TRY(context.graph.nodes(context.run, /*with_source=*/false))) {
    if (row.normalised_digest != digest) continue;
    const std::optional<NodeEvaluation> found = TRY(context.graph.verdict_of(row.id));
    if (found) return std::optional<Verdict>(found->evaluation.verdict);
  }
  return std::optional<Verdict>();
}

// Legal plans one fusion move away from `base`, best estimate first.
std::vector<Genome> other_structures(const ProposalContext& context, const Genome& base,
                                     bool round_least) {
  std::vector<Genome> genomes;
  for (const size_t i : cases_to_vary(context)) {
    const ir::Program& program = context.programs[i];
    const CaseGenome& of_case = base.cases[i];
    for (ir::Plan& neighbour : ir::fusion_neighbours(program, of_case.plan)) {
      std::optional<CaseGenome> genome = complete(context, program, std::move(neighbour));
      if (genome && round_least) {
        genome = rounding_least(context, program, std::move(*genome));
      }
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
    std::optional<Proposal> proposal =
        TRY(print_new(context, genome, {}, fmt::format("draft: {}, {}", what, shape_of(genome))));
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
  // Decisions that round more were a guess at what the judge accepts. Before it has said so, the
  // same plan without the guess is the next best; and all further ones, once it has said no.
  const std::optional<Verdict> verdict = TRY(verdict_of(context, base));
  const bool round_least = verdict == Verdict::wrong_output;
  const Genome least = rounding_least(context, base);
  if (verdict != Verdict::accepted) {
    auto found = TRY(first_new(context, {least}, "greedy fusion, rounding least"));
    if (found) return found;
  }
  if (round_least) base = least;
  const std::vector<Genome> structures = other_structures(context, base, round_least);
  if (auto found = TRY(first_new(context, structures, "another fusion"))) return found;
  return first_new(context, random_schedules(context, base, rng), "another schedule");
}

}  // namespace ke::synth
