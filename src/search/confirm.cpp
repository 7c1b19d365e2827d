// SPDX-License-Identifier: Apache-2.0
#include "search/confirm.hpp"

#include "base/json.hpp"

namespace ke {
namespace {

// The run's confirmed evaluation of a node, made now unless it is there.
Result<Evaluation> confirmed(const SearchDependencies& dependencies, NodeId node) {
  const std::optional<NodeEvaluation> known = TRY(dependencies.graph.verdict_of(node));
  if (known && known->evaluation.confirmed) return known->evaluation;
  const std::string source = TRY(dependencies.graph.node(node)).source;
  const Artifact artifact = TRY(dependencies.evaluator.build(source));
  Evaluation evaluation =
      artifact.failure ? *artifact.failure
                       : TRY(dependencies.evaluator.judge(artifact, {.effort = Effort::confirm}));
  evaluation.build_ms = artifact.build_ms;
  evaluation.confirmed = true;
  TRY(dependencies.graph.add_evaluation(node, evaluation, enum_name(Effort::confirm)));
  return evaluation;
}

}  // namespace

Result<Confirmation> confirm_best(const SearchDependencies& dependencies, RunId run,
                                  int64_t count) {
  const std::vector<RankedNode> ranked = TRY(dependencies.graph.best_of_run(run, 2 * count));
  Confirmation best;
  double best_fitness = 0;
  for (size_t rank = 0; rank < ranked.size(); ++rank) {
    const bool enough = static_cast<int64_t>(rank) >= count || dependencies.stop.stop_requested();
    if (enough && best.best) break;
    const NodeId node = ranked[rank].node;
    dependencies.events.emit("run.confirming",
                             {{"node", node.value}, {"rank", rank + 1}, {"count", count}});
    Evaluation evaluation = TRY(confirmed(dependencies, node));
    const std::optional<double> figure = fitness(evaluation);
    if (figure && (!best.best || *figure > best_fitness)) {
      best_fitness = *figure;
      best = {node, std::move(evaluation)};
    }
  }
  return best;
}

}  // namespace ke
