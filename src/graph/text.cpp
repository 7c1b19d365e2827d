// SPDX-License-Identifier: Apache-2.0
//
// The graph for people: tables of runs, one node in full, and where a node came from.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>

#include "graph/graph.hpp"

namespace ke {
namespace {

std::string utc(int64_t ms) {
  return fmt::format("{:%Y-%m-%d %H:%M}", fmt::gmtime(static_cast<std::time_t>(ms / 1000)));
}

std::string speedup(std::optional<double> fitness) {
  return fitness ? fmt::format("{:.3f}x", *fitness) : "-";
}

std::string ids(const std::vector<NodeId>& nodes) {
  std::string text;
  for (const NodeId id : nodes) text += fmt::format("{}{}", text.empty() ? "" : ", ", id.value);
  return text.empty() ? "none" : text;
}

// "accepted, 1.234x (confirmed)"
std::string outcome(const std::optional<NodeEvaluation>& found) {
  if (!found) return "not judged yet";
  const Evaluation& evaluation = found->evaluation;
  std::string text(enum_name(evaluation.verdict));
  if (const std::optional<double> value = fitness(evaluation)) text += ", " + speedup(value);
  if (evaluation.confirmed) text += " (confirmed)";
  if (found->reused_from) text += " (from an earlier run)";
  return text;
}

std::string describe(const NodeEvaluation& one) {
  const Evaluation& evaluation = one.evaluation;
  std::string text = fmt::format("evaluation {}  {}: {}\n", one.id.value, one.effort, outcome(one));
  if (!evaluation.detail.empty()) text += fmt::format("  {}\n", evaluation.detail);
  if (const auto& measured = evaluation.measurement) {
    const size_t cases = evaluation.cases.size();
    text += fmt::format("  {} ns a call; speed-up {:.3f} [{:.3f}, {:.3f}] over {}\n",
                        measured->time_ns, measured->speedup, measured->speedup_low,
                        measured->speedup_high,
                        cases > 0 ? fmt::format("{} cases", cases)
                                  : fmt::format("{} samples", measured->candidate_ns.size()));
  }
  for (const CaseResult& shape_case : evaluation.cases) {
    text += "  " + shape_case.shapes;
    if (shape_case.measurement) {
      text += fmt::format(": {} ns a call; speed-up {:.3f}", shape_case.measurement->time_ns,
                          shape_case.measurement->speedup);
    }
    text += shape_case.counted ? "\n" : "; not in the mean\n";
  }
  for (const std::string& flag : evaluation.flags) text += fmt::format("  flag: {}\n", flag);
  if (!evaluation.diagnostics.empty()) text += evaluation.diagnostics + "\n";
  return text;
}

}  // namespace

Result<std::string> list_text(const GraphReader& graph) {
  std::string text =
      fmt::format("{:>5}  {:<32} {:<8} {:<16} {:>6} {:>9} {:>9}  {}\n", "run", "problem", "target",
                  "started (UTC)", "nodes", "best", "node", "ended");
  for (const RunRow& run : TRY(graph.runs())) {
    const ProblemRow problem = TRY(graph.problem(run.scope.problem));
    const std::vector<RankedNode> best = TRY(graph.best_of_run(run.id, 1));
    const size_t nodes = TRY(graph.nodes(run.id, false)).size();
    const std::string best_node = best.empty() ? "-" : fmt::format("{}", best[0].node.value);
    text += fmt::format("{:>5}  {:<32} {:<8} {:<16} {:>6} {:>9} {:>9}  {}\n", run.id.value,
                        problem.name, run.scope.target, utc(run.started_utc_ms), nodes,
                        best.empty() ? "-" : speedup(best[0].fitness), best_node,
                        run.ended_utc_ms ? run.end_reason : "no");
  }
  return text;
}

Result<std::string> show_text(const GraphReader& graph, NodeId id) {
  const NodeRow node = TRY(graph.node(id));
  const RunRow run = TRY(graph.run(node.run));
  const ProblemRow problem = TRY(graph.problem(run.scope.problem));
  std::string text = fmt::format(
      "node {} of run {}, step {}: {} by {}\nproblem {}  target {}  toolchain {}\nparents {}  "
      "memory {}\nnote {}\nsource {}\n",
      node.id.value, node.run.value, node.step, enum_name(node.kind), node.proposer, problem.name,
      run.scope.target, run.scope.toolchain, ids(node.parents), enum_name(node.memory), node.note,
      node.source_digest.short_hex());
  for (const NodeEvaluation& one : TRY(graph.evaluations(id))) text += describe(one);
  if (!node.plan.empty()) text += fmt::format("plan {}\n", node.plan);
  text += "\n" + node.source;
  if (!text.ends_with('\n')) text += '\n';
  return text;
}

Result<std::string> lineage_text(const GraphReader& graph, NodeId id) {
  std::string text;
  for (const NodeRow& node : TRY(graph.lineage(id))) {
    text += fmt::format("{:>6}  step {:>4}  {:<6} {:<8} from {:<12} {}; {}\n", node.id.value,
                        node.step, enum_name(node.kind), node.proposer, ids(node.parents),
                        outcome(TRY(graph.verdict_of(node.id))), node.note);
  }
  return text;
}

}  // namespace ke
