// SPDX-License-Identifier: Apache-2.0
//
// A run as JSON: everything that was recorded, for other programs and for training data.
#include <functional>

#include "base/json.hpp"
#include "graph/graph.hpp"
#include "graph/recording.hpp"

namespace ke {
namespace {

Json ids_of(const std::vector<NodeId>& ids) {
  Json list = Json::array();
  for (const NodeId id : ids) list.push_back(id.value);
  return list;
}

// Text that was written as JSON, as a value; null when it was empty.
Result<Json> embedded(const std::string& text) {
  if (text.empty()) return Json(nullptr);
  return parse_json(text);
}

Result<Json> encode_header(const GraphReader& graph, const RunRow& run) {
  const ProblemRow problem = TRY(graph.problem(run.scope.problem));
  return Json{{"schema", kRecordingSchema},
              {"run", run.id.value},
              {"problem", problem.name},
              {"problem_digest", problem.digest.hex()},
              {"target", run.scope.target},
              {"toolchain", run.scope.toolchain},
              {"config", TRY(embedded(run.config))},
              {"seed", run.seed},
              {"started_utc_ms", run.started_utc_ms},
              {"ended_utc_ms", run.ended_utc_ms ? Json(*run.ended_utc_ms) : Json(nullptr)},
              {"end_reason", run.end_reason},
              {"description", TRY(embedded(run.description))}};
}

Result<Json> encode_node(const GraphReader& graph, const NodeRow& node) {
  Json evaluations = Json::array();
  for (const NodeEvaluation& one : TRY(graph.evaluations(node.id))) {
    evaluations.push_back({{"id", one.id.value},
                           {"effort", one.effort},
                           {"reused_from", one.reused_from ? Json(one.reused_from.value) : Json()},
                           {"evaluation", encode(one.evaluation)}});
  }
  return Json{{"node", node.id.value},
              {"step", node.step},
              {"kind", enum_name(node.kind)},
              {"memory", enum_name(node.memory)},
              {"parents", ids_of(node.parents)},
              {"proposer", node.proposer},
              {"note", node.note},
              {"source", node.source},
              {"source_digest", node.source_digest.hex()},
              {"normalised_digest", node.normalised_digest.hex()},
              {"plan", TRY(embedded(node.plan))},
              {"prompt", node.prompt ? Json(node.prompt.value) : Json()},
              {"evaluations", std::move(evaluations)}};
}

Result<Json> encode_exchange(const ExchangeRow& row) {
  const PromptRow& prompt = row.prompt;
  Json answers = Json::array();
  for (const AnswerRow& answer : row.answers) {
    answers.push_back({{"id", answer.id.value},
                       {"consumed", answer.consumed},
                       {"early", answer.early},
                       {"outcome", TRY(embedded(answer.outcome))},
                       {"fault", answer.fault}});
  }
  return Json{{"id", prompt.id.value},
              {"step", prompt.step},
              {"consumed", prompt.consumed},
              {"follows", prompt.follows ? Json(prompt.follows.value) : Json()},
              {"style", prompt.style},
              {"model", prompt.model},
              {"kind", enum_name(prompt.kind)},
              {"memory", enum_name(prompt.memory)},
              {"parents", ids_of(prompt.parents)},
              {"digest", prompt.digest.hex()},
              {"stable", prompt.stable_digest.hex()},
              {"request", TRY(embedded(prompt.request))},
              {"ground", TRY(embedded(prompt.ground))},
              {"answers", std::move(answers)}};
}

Json encode_statistic(const StatisticRow& row) {
  return Json{
      {"step", row.step}, {"node", row.node.value}, {"name", row.name}, {"value", row.value}};
}

}  // namespace

Result<Json> export_run(const GraphReader& graph, RunId run) {
  Json json = TRY(encode_header(graph, TRY(graph.run(run))));
  json["nodes"] = Json::array();
  for (const NodeRow& node : TRY(graph.nodes(run, true))) {
    json["nodes"].push_back(TRY(encode_node(graph, node)));
  }
  json["statistics"] = Json::array();
  for (const StatisticRow& row : TRY(graph.statistics(run))) {
    json["statistics"].push_back(encode_statistic(row));
  }
  json["prompts"] = Json::array();
  json["texts"] = Json::object();
  for (const ExchangeRow& row : TRY(graph.exchanges(run))) {
    json["prompts"].push_back(TRY(encode_exchange(row)));
    json["texts"][row.prompt.stable_digest.hex()] = row.prompt.stable;
  }
  json["journal"] = Json::array();
  for (const JournalRow& row : TRY(graph.journal(run))) {
    json["journal"].push_back(Json::array({enum_name(row.kind), row.row}));
  }
  return json;
}

Result<void> export_run_lines(const GraphReader& graph, RunId run,
                              const std::function<void(std::string_view line)>& write) {
  write(dump_json(TRY(encode_header(graph, TRY(graph.run(run))))));
  for (const NodeRow& bare : TRY(graph.nodes(run, false))) {
    write(dump_json(TRY(encode_node(graph, TRY(graph.node(bare.id))))));
  }
  for (const StatisticRow& row : TRY(graph.statistics(run)))
    write(dump_json(encode_statistic(row)));
  return {};
}

}  // namespace ke
