// SPDX-License-Identifier: Apache-2.0
#include "propose/synth/genome.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/assert.hpp"
#include "base/json.hpp"

namespace ke::synth {

double Genome::cost() const {
  double product = 1;
  for (const CaseGenome& one : cases) product *= std::max(one.estimate_ns(), 1.0);
  return product;
}

Genome Genome::with(size_t index, CaseGenome genome) const {
  Genome changed = *this;
  changed.cases[index] = std::move(genome);
  return changed;
}

std::vector<size_t> cases_to_vary(const ProposalContext& context) {
  std::vector<size_t> all, computing;
  for (size_t i = 0; i < context.programs.size(); ++i) {
    const ir::Program& program = context.programs[i];
    const auto holds_something = [&](ir::TensorId id) { return program.tensor(id).elements() > 0; };
    all.push_back(i);
    if (std::ranges::any_of(program.outputs, holds_something)) computing.push_back(i);
  }
  return computing.empty() ? all : computing;
}

double CaseGenome::estimate_ns() const {
  return std::accumulate(estimates_ns.begin(), estimates_ns.end(), 0.0);
}

std::optional<CaseGenome> complete(const ProposalContext& context, const ir::Program& program,
                                   ir::Plan plan) {
  Result<std::vector<ir::FusedKernel>> kernels = ir::realize(program, plan);
  if (!kernels) return std::nullopt;
  KE_ASSERT(kernels->size() == plan.kernels.size());
  CaseGenome genome{.plan = std::move(plan), .kernels = std::move(*kernels)};
  for (size_t i = 0; i < genome.kernels.size(); ++i) {
    ir::FusedKernel& kernel = genome.kernels[i];
    std::vector<ScheduleChoice> choices =
        context.target.choices(program, kernel, context.machine);
    ir::Schedule schedule;
    for (const ScheduleChoice& choice : choices) {
      const auto held = kernel.schedule.find(choice.name);
      const bool legal = held != kernel.schedule.end() &&
                         std::ranges::find(choice.values, held->second) != choice.values.end();
      schedule[choice.name] = legal ? held->second : choice.preferred;
    }
    kernel.schedule = genome.plan.kernels[i].schedule = std::move(schedule);
    genome.estimates_ns.push_back(
        context.target.estimate_ns(program, kernel, context.machine));
    genome.choices.push_back(std::move(choices));
  }
  return genome;
}

namespace {

std::optional<CaseGenome> decode_case(const ProposalContext& context, const ir::Program& program,
                                      const Json& json) {
  Result<ir::Plan> plan = ir::decode_plan(json, program);
  if (!plan || !ir::verify(program, *plan)) return std::nullopt;
  return complete(context, program, std::move(*plan));
}

Json encode(const Genome& genome) {
  if (genome.cases.size() == 1) return ir::encode(genome.cases[0].plan);
  Json plans = Json::array();
  for (const CaseGenome& one : genome.cases) plans.push_back(ir::encode(one.plan));
  return plans;
}

}  // namespace

std::optional<Genome> genome_of(const ProposalContext& context, const NodeRow& parent) {
  if (parent.plan.empty()) return std::nullopt;
  const Result<Json> json = parse_json(parent.plan);
  if (!json) return std::nullopt;
  const size_t count = context.programs.size();
  if (count > 1 && (!json->is_array() || json->size() != count)) return std::nullopt;
  Genome genome;
  for (size_t i = 0; i < count; ++i) {
    auto one = decode_case(context, context.programs[i], count > 1 ? (*json)[i] : *json);
    if (!one) return std::nullopt;
    genome.cases.push_back(std::move(*one));
  }
  return genome;
}

Result<std::string> print(const ProposalContext& context, const Genome& genome) {
  std::vector<CaseKernels> cases;
  for (size_t i = 0; i < genome.cases.size(); ++i) {
    cases.push_back({&context.programs[i], genome.cases[i].kernels});
  }
  return context.target.print_cases(cases, context.machine);
}

std::string stored(const Genome& genome) { return dump_json(encode(genome)); }

Result<std::optional<Proposal>> print_new(const ProposalContext& context, const Genome& genome,
                                          std::vector<NodeId> parents, std::string note) {
  Result<std::string> source = print(context, genome);
  if (!source) {
    if (source.error().code == Errc::unavailable) return std::optional<Proposal>();
    return std::move(source).error();
  }
  if (context.is_known(*source)) return std::optional<Proposal>();
  return std::optional<Proposal>(Proposal{.source = std::move(*source),
                                          .plan = stored(genome),
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

std::string shape_of(const Genome& genome) {
  if (genome.cases.size() == 1) return shape_of(genome.cases[0].plan);
  std::string text;
  for (size_t i = 0; i < genome.cases.size(); ++i) {
    text += (i > 0 ? "; " : "") + case_prefix(genome, i) + shape_of(genome.cases[i].plan);
  }
  return text;
}

std::string case_prefix(const Genome& genome, size_t index) {
  return genome.cases.size() == 1 ? "" : fmt::format("case {}: ", index);
}

}  // namespace ke::synth
