// SPDX-License-Identifier: Apache-2.0
//
// Between a plan (the genome) and a source: plans are completed with the target's preferred
// decisions, so that what is stored says everything, and printed.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "propose/proposer.hpp"

namespace ke::synth {

// What is estimated this many times as slow as where it comes from is never tried: it would cost
// more to judge than it tells.
inline constexpr double kHopeless = 4;

// A legal plan for one shape case, with every decision spelled out.
struct CaseGenome {
  ir::Plan plan;
  std::vector<ir::FusedKernel> kernels;              // one a kernel of the plan, same order
  std::vector<std::vector<ScheduleChoice>> choices;  // of each kernel
  std::vector<double> estimates_ns;                  // of each kernel, by the target's cost model
  double estimate_ns() const;
};

// One plan a shape case. Stored as that plan where there is one case, else as a list of them.
struct Genome {
  std::vector<CaseGenome> cases;
  // Product over the cases: a gain of one part in any of them is worth the same, as in the fitness.
  double cost() const;
  // The genome with another plan for one case.
  Genome with(size_t index, CaseGenome genome) const;
};

// The cases whose plans are worth varying: those that compute something, or all when none does.
std::vector<size_t> cases_to_vary(const ProposalContext& context);

// Missing decisions, and those the target doesn't offer, take its preferred value. Nothing when the
// plan is not legal for the case's program.
std::optional<CaseGenome> complete(const ProposalContext& context, const ir::Program& program,
                                   ir::Plan plan);

// The genome stored with a parent. Nothing when it has none, or an outdated one.
std::optional<Genome> genome_of(const ProposalContext& context, const NodeRow& parent);

// The source that the target makes of it. Errc::unavailable when it cannot print it.
Result<std::string> print(const ProposalContext& context, const Genome& genome);

// As a node stores it.
std::string stored(const Genome& genome);

// The genome as a proposal. Nothing when the target cannot print it or the run knows its source.
Result<std::optional<Proposal>> print_new(const ProposalContext& context, const Genome& genome,
                                          std::vector<NodeId> parents, std::string note);

// "2 kernels (reduce, map)": what a plan looks like from afar.
std::string shape_of(const ir::Plan& plan);
std::string shape_of(const Genome& genome);

// "case 1: " where there are several, for notes.
std::string case_prefix(const Genome& genome, size_t index);

// --- The three ways to a new genome: operator/synth.cpp chooses by the context's kind ------------
// A mutation, or a draft of another structure, changes the plan of one case.

// Greedy fusion under the preferred schedule first, then plans of another structure by the cost
// model, then schedules drawn at random and ranked by it.
Result<std::optional<Proposal>> draft(const ProposalContext& context, Rng& rng);

// One or two schedule decisions, or one fusion boundary, of the only parent.
Result<std::optional<Proposal>> mutate(const ProposalContext& context, Rng& rng);

// The first parent with the schedules of whole kernels of the other, where both have the kernel.
// With several cases: with whole cases of the other, or with such a mixture in one of them.
Result<std::optional<Proposal>> cross(const ProposalContext& context, Rng& rng);

}  // namespace ke::synth
