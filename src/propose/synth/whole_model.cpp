// SPDX-License-Identifier: Apache-2.0
#include "propose/synth/whole_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/json.hpp"

namespace ke::synth {
namespace {

constexpr int kDraws = 16;

class WholeModel {
 public:
  WholeModel(const ProposalContext& context, const ModelPrinter& printer, Rng& rng)
      : context_(context), printer_(printer), rng_(rng) {
    const Problem* const own[] = {&context.problem};
    cases_.assign(context.cases.begin(), context.cases.end());
    if (cases_.empty()) cases_.assign(std::begin(own), std::end(own));
    choices_ = printer.model_choices(cases_);
  }

  Result<std::optional<Proposal>> propose() {
    switch (context_.kind) {
      case NodeKind::draft:
        return draft();
      case NodeKind::mutate:
        return mutate();
      case NodeKind::cross:
        return cross();
      case NodeKind::seed:
        break;
    }
    return std::optional<Proposal>();
  }

 private:
  ir::Schedule preferred() const {
    ir::Schedule schedule;
    for (const ScheduleChoice& choice : choices_) schedule[choice.name] = choice.preferred;
    return schedule;
  }

  // Decisions that a parent's target did not offer any more are left out, missing ones preferred.
  std::optional<ir::Schedule> of(const ParentView& parent) const {
    const Result<Json> json = parse_json(parent.node.plan);
    if (parent.node.plan.empty() || !json || !json->is_object() || !json->contains("model")) {
      return std::nullopt;
    }
    ir::Schedule schedule = preferred();
    for (const ScheduleChoice& choice : choices_) {
      const auto found = (*json)["model"].find(choice.name);
      if (found == (*json)["model"].end() || !found->is_number_integer()) continue;
      const auto value = found->get<int64_t>();
      if (std::ranges::find(choice.values, value) != choice.values.end()) {
        schedule[choice.name] = value;
      }
    }
    return schedule;
  }

  Result<std::optional<Proposal>> print(const ir::Schedule& schedule, std::string note) const {
    Result<std::string> source = printer_.print_model(cases_, schedule);
    if (!source) {
      if (source.error().code == Errc::unavailable) return std::optional<Proposal>();
      return std::move(source).error();
    }
    if (context_.is_known(*source)) return std::optional<Proposal>();
    Json decisions = Json::object();
    for (const auto& [name, value] : schedule) decisions[name] = value;
    Proposal proposal{.source = std::move(*source),
                      .plan = dump_json(Json{{"model", std::move(decisions)}}),
                      .parents = {},
                      .note = std::move(note)};
    for (const ParentView& parent : context_.parents) proposal.parents.push_back(parent.node.id);
    return std::optional<Proposal>(std::move(proposal));
  }

  Result<std::optional<Proposal>> draft() {
    const ir::Schedule base = preferred();
    if (auto found = TRY(print(base, "draft: preferred decisions"))) return found;
    for (const ScheduleChoice& choice : choices_) {
      if (choice.values.size() != 2) continue;  // the numbers of single kernels are for mutations
      ir::Schedule other = base;
      other[choice.name] = choice.values[choice.preferred == choice.values[0] ? 1 : 0];
      auto found =
          TRY(print(other, fmt::format("draft: {} = {}", choice.name, other[choice.name])));
      if (found) return found;
    }
    for (int i = 0; i < kDraws && !choices_.empty(); ++i) {
      ir::Schedule other = base;
      for (const ScheduleChoice& choice : choices_) {
        if (rng_.chance(0.3)) other[choice.name] = rng_.pick(choice.values);
      }
      if (auto found = TRY(print(other, "draft: drawn decisions"))) return found;
    }
    return std::optional<Proposal>();
  }

  std::string change(ir::Schedule& schedule) {
    const ScheduleChoice& choice = rng_.pick(choices_);
    int64_t& value = schedule[choice.name];
    const int64_t before = value;
    value = rng_.pick(choice.values);
    return fmt::format("{} {} -> {}", choice.name, before, value);
  }

  Result<std::optional<Proposal>> mutate() {
    const std::optional<ir::Schedule> parent = of(context_.parents.front());
    if (!parent || choices_.empty()) return std::optional<Proposal>();
    for (int i = 0; i < kDraws; ++i) {
      ir::Schedule child = *parent;
      std::string note = change(child);
      if (rng_.chance(0.3)) note += ", " + change(child);
      if (child == *parent) continue;
      if (auto found = TRY(print(child, std::move(note)))) return found;
    }
    return std::optional<Proposal>();
  }

  Result<std::optional<Proposal>> cross() {
    if (context_.parents.size() < 2) return std::optional<Proposal>();
    const std::optional<ir::Schedule> a = of(context_.parents[0]), b = of(context_.parents[1]);
    if (!a || !b) return std::optional<Proposal>();
    for (int i = 0; i < kDraws; ++i) {
      ir::Schedule child = *a;
      for (const auto& [name, value] : *b) {
        if (rng_.chance(0.5)) child[name] = value;
      }
      if (auto found = TRY(print(child, "decisions of both"))) return found;
    }
    return std::optional<Proposal>();
  }

  const ProposalContext& context_;
  const ModelPrinter& printer_;
  Rng& rng_;
  std::vector<const Problem*> cases_;
  std::vector<ScheduleChoice> choices_;
};

}  // namespace

Result<std::optional<Proposal>> whole_model(const ProposalContext& context,
                                            const ModelPrinter& printer, Rng& rng) {
  return WholeModel(context, printer, rng).propose();
}

}  // namespace ke::synth
