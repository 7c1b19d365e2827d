// SPDX-License-Identifier: Apache-2.0
#include "search/model_options.hpp"

#include <fmt/format.h>

#include "base/json.hpp"
#include "llm/exchange.hpp"

namespace ke {

Json encode(const ModelOptions& options) {
  Json json{{"names", options.names},
            {"calls", options.calls},
            {"share", options.share},
            {"prices", options.prices}};
  if (!options.embeddings.empty()) json["embeddings"] = options.embeddings;
  if (options.tokens_max) json["tokens_max"] = *options.tokens_max;
  if (options.calls_max) json["calls_max"] = *options.calls_max;
  if (options.usd_max) json["usd_max"] = *options.usd_max;
  if (options.sub_agents != SubAgents::embedded) {
    json["sub_agents"] = enum_name(options.sub_agents);
  }
  return json;
}

Result<ModelOptions> decode_models(const Json& json) {
  Fields fields = TRY(Fields::of(json, "the run's models"));
  ModelOptions options;
  options.names = TRY(fields.get<std::vector<std::string>>("names"));
  options.calls = TRY(fields.get<int32_t>("calls"));
  options.share = TRY(fields.get<double>("share"));
  options.prices = TRY(fields.get<std::string>("prices"));
  options.embeddings = TRY(fields.get_or<std::string>("embeddings", ""));
  options.tokens_max = TRY(fields.get_optional<int64_t>("tokens_max"));
  options.calls_max = TRY(fields.get_optional<int64_t>("calls_max"));
  options.usd_max = TRY(fields.get_optional<double>("usd_max"));
  const auto named = TRY(fields.get_or<std::string>("sub_agents", "embedded"));
  const std::optional<SubAgents> sub_agents = parse_enum<SubAgents>(named);
  if (!sub_agents) {
    return Error{Errc::invalid, fmt::format("the run's models have no sub-agents '{}'", named)};
  }
  options.sub_agents = *sub_agents;
  TRY(fields.finish());
  return options;
}

Result<ModelSpending> spending_of(const GraphReader& graph, RunId run) {
  ModelSpending spending;
  for (const ExchangeRow& exchange : TRY(graph.exchanges(run))) {
    for (const AnswerRow& answer : exchange.answers) {
      if (answer.early) continue;
      const Json json = TRY(parse_json(answer.outcome));
      const llm::Outcome outcome = TRY(llm::decode_outcome(json, exchange.prompt.model));
      if (!outcome && outcome.error().kind == llm::FailureKind::budget) continue;  // never sent
      const llm::Usage& usage = outcome ? outcome->usage : outcome.error().usage;
      ++spending.calls;
      spending.tokens += usage.input_tokens + usage.output_tokens;
      spending.usd += json.value("usd", 0.0);
    }
  }
  return spending;
}

}  // namespace ke
