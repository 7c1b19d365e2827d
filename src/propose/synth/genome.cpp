// SPDX-License-Identifier: Apache-2.0
#include "propose/synth/genome.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/assert.hpp"
#include "base/json.hpp"

namespace ke::synth {

double Genome::estimate_ns() const {
  return std::accumulate(estimates_ns.begin(), estimates_ns.end(), 0.0);
}

std::optional<Genome> complete(const ProposalContext& context, ir::Plan plan) {
  Result<std::vector<ir::FusedKernel>> kernels = ir::realize(*context.program, plan);
  if (!kernels) return std::nullopt;
  KE_ASSERT(kernels->size() == plan.kernels.size());
  Genome genome{.plan = std::move(plan), .kernels = std::move(*kernels)};
  for (size_t i = 0; i < genome.kernels.size(); ++i) {
    ir::FusedKernel& kernel = genome.kernels[i];
    std::vector<ScheduleChoice> choices =
        context.target.choices(*context.program, kernel, context.machine);
    ir::Schedule schedule;
    for (const ScheduleChoice& choice : choices) {
      const auto held = kernel.schedule.find(choice.name);
      const bool legal = held != kernel.schedule.end() &&
                         std::ranges::find(choice.values, held->second) != choice.values.end();
      schedule[choice.name] = legal ? held->second : choice.preferred;
    }
    kernel.schedule = genome.plan.kernels[i].schedule = std::move(schedule);
    genome.estimates_ns.push_back(
        context.target.estimate_ns(*context.program, kernel, context.machine));
    genome.choices.push_back(std::move(choices));
  }
  return genome;
}

std::optional<Genome> genome_of(const ProposalContext& context, const NodeRow& parent) {
  if (parent.plan.empty()) return std::nullopt;
  const Result<Json> json = parse_json(parent.plan);
  if (!json) return std::nullopt;
  Result<ir::Plan> plan = ir::decode_plan(*json, *context.program);
  if (!plan || !ir::verify(*context.program, *plan)) return std::nullopt;
  return complete(context, std::move(*plan));
}

Result<std::optional<Proposal>> print_new(const ProposalContext& context, const Genome& genome,
                                          std::vector<NodeId> parents, std::string note) {
  Result<std::string> source =
      context.target.print(*context.program, genome.kernels, context.machine);
  if (!source) {
    if (source.error().code == Errc::unavailable) return std::optional<Proposal>();
    return std::move(source).error();
  }
  if (context.is_known(*source)) return std::optional<Proposal>();
  return std::optional<Proposal>(Proposal{.source = std::move(*source),
                                          .plan = dump_json(ir::encode(genome.plan)),
                                          .parents = std::move(parents),
                                          .note = std::move(note)});
}

std::string shape_of(const ir::Plan& plan) {
  std::string skeletons;
  for (const ir::KernelPlan& kernel : plan.kernels) {
    skeletons += fmt::format("{}{}", skeletons.empty() ? "" : ", ", enum_name(kernel.skeleton));
  }
  return fmt::format("{} kernel{} ({})", plan.kernels.size(), plan.kernels.size() == 1 ? "" : "s",
                     skeletons);
}

}  // namespace ke::synth
