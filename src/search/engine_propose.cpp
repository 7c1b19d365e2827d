// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "graph/source.hpp"
#include "search/engine.hpp"

namespace ke {
namespace {

// Selections tried for one step before giving up until another result is in.
constexpr int kTriesMax = 12;
// Nodes known from earlier runs cost no step, but a run must end.
constexpr int64_t kReusedPerStep = 4;

}  // namespace

Result<void> Engine::fill() {
  const auto in_flight_max = static_cast<size_t>(options_.build_ahead) + 1;
  const int64_t nodes_max = (1 + kReusedPerStep) * options_.steps;
  while (in_flight_.size() < in_flight_max && fresh_proposed_ < options_.steps &&
         static_cast<int64_t>(rows_.size()) < nodes_max && !dependencies_.stop.stop_requested()) {
    if (!embedded_may_go() || !TRY(propose())) return {};
  }
  return {};
}

bool Engine::draft_phase() const {
  const auto drafts = std::ranges::count(rows_, NodeKind::draft, &NodeRow::kind);
  return drafts < options_.drafts;
}

// Generators are split by step, by the number of spent nodes and by try, not drawn from one stream:
// a resumed run, which knows the step and the spent nodes, draws the same.
Result<bool> Engine::propose() {
  const auto step = static_cast<int64_t>(rows_.size()) + 1;
  if (dependencies_.pace) {
    for (const NodeId node : dependencies_.pace->spent_by(step - 1)) {
      const auto found = positions_.find(node);
      if (found != positions_.end()) TRY(mark_spent(found->second));
    }
  }
  const Rng of_step = rng_.split(fmt::format("step {}", step));
  const bool nothing_accepted = !population_.best();
  if (draft_phase() || nothing_accepted) {
    if (TRY(try_selection({.kind = NodeKind::draft}, of_step.split("draft")))) return true;
  }
  for (int tries = 0; tries < kTriesMax; ++tries) {
    if (population_.fertile().empty()) break;
    const Rng rng = of_step.split(fmt::format("spent {} try {}", spent_count_, tries));
    Rng selecting = rng.split("select");
    const Selection selection = policy_->select(population_, step, selecting);
    if (TRY(try_selection(selection, rng))) return true;
    const bool alone = selection.kind == NodeKind::mutate;
    if (alone && TRY(mark_spent(selection.parents.front()))) tries = -1;
  }
  // Every accepted node is spent: only another draft can open a new region.
  if (nothing_accepted || !population_.fertile().empty()) return false;
  return try_selection({.kind = NodeKind::draft}, of_step.split("last draft"));
}

// Asks the proposers in the bandit's order; the first idea enters the run.
Result<bool> Engine::try_selection(const Selection& selection, const Rng& rng) {
  const ProposalContext context = TRY(context_of(selection));
  Rng ranking = rng.split("bandit");
  for (const int arm : bandit_.ranking(ranking)) {
    const Arm& chosen = arms_[static_cast<size_t>(arm)];
    Rng own = rng.split(chosen.info->name);
    std::optional<Proposal> proposal =
        TRY(chosen.proposer->propose(context, own)
                .context(fmt::format("proposer {}", chosen.info->name)));
    if (!proposal || context.is_known(proposal->source)) continue;
    TRY(enter({.kind = selection.kind,
               .memory = selection.memory,
               .parents = std::move(proposal->parents),
               .proposer = std::string(chosen.info->name),
               .source = std::move(proposal->source),
               .plan = std::move(proposal->plan),
               .note = std::move(proposal->note)}));
    return true;
  }
  return false;
}

// No proposer had a new idea for this node alone: it is out of the selection from now on.
Result<bool> Engine::mark_spent(int position) {
  Individual& individual = at(position);
  if (individual.spent) return false;
  individual.spent = true;
  ++spent_count_;
  const StatisticRow change{static_cast<int64_t>(rows_.size()), individual.id, "spent", 1};
  TRY(dependencies_.graph.add_statistics(run_, std::span(&change, 1)));
  return true;
}

Result<ProposalContext> Engine::context_of(const Selection& selection) const {
  ProposalContext context{.problem = dependencies_.problem,
                          .cases = dependencies_.cases,
                          .programs = dependencies_.programs,
                          .target = dependencies_.target,
                          .machine = dependencies_.machine,
                          .kind = selection.kind,
                          .parents = {},
                          .memory = selection.memory,
                          .graph = dependencies_.graph,
                          .run = run_,
                          .is_known = [this](std::string_view source) {
                            return known_.contains(normalised_digest(source));
                          }};
  for (const int parent : selection.parents) {
    ParentView view{.node = TRY(dependencies_.graph.node(at(parent).id)), .evaluation = {}};
    if (auto found = TRY(dependencies_.graph.verdict_of(view.node.id))) {
      view.evaluation = std::move(found->evaluation);
    }
    context.parents.push_back(std::move(view));
  }
  return context;
}

// Sources that the user gave, then the best that earlier runs found.
Result<void> Engine::enter_seeds() {
  for (const SeedKernel& seed : options_.seeds) {
    if (known_.contains(normalised_digest(seed.source))) continue;
    TRY(enter({.kind = NodeKind::seed,
               .memory = Memory::nothing,
               .proposer = seed.proposer,
               .source = seed.source,
               .plan = seed.plan,
               .note = seed.name}));
  }
  if (options_.history_seeds <= 0) return {};
  for (const RankedNode& best :
       TRY(dependencies_.graph.best_of_scope(scope_, options_.history_seeds))) {
    NodeRow row = TRY(dependencies_.graph.node(best.node));
    if (known_.contains(row.normalised_digest)) continue;
    TRY(enter({.kind = NodeKind::seed,
               .memory = Memory::nothing,
               .parents = {row.id},
               .proposer = "history",
               .source = std::move(row.source),
               .plan = std::move(row.plan),
               .note = fmt::format("node {} of run {}", row.id.value, row.run.value)}));
  }
  return {};
}

// Records the node (a checkpoint), and has it built unless an earlier run judged the same kernel.
Result<void> Engine::enter(NodeRow row) {
  row.run = run_;
  row.step = static_cast<int64_t>(rows_.size()) + 1;
  row.normalised_digest = normalised_digest(row.source);
  std::optional<NodeEvaluation> earlier;
  if (options_.reuse) {
    earlier = TRY(dependencies_.graph.find_duplicate(scope_, row.normalised_digest));
  }
  row.id = TRY(dependencies_.graph.add_node(row));
  adopt(row);
  if (!earlier) {
    ++fresh_proposed_;
    if (!row.prompt) ++embedded_;
    pipeline_.build(row.id, std::move(row.source));
  }
  in_flight_.push_back({static_cast<int>(rows_.size()) - 1, std::move(earlier)});
  return {};
}

}  // namespace ke
