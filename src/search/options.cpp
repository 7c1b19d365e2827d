// SPDX-License-Identifier: Apache-2.0
//
// Options as they are kept with their run, so that `resume` goes on under the same ones.
#include "base/json.hpp"
#include "search/model_options.hpp"
#include "search/search.hpp"

namespace ke {

Json encode(const SearchOptions& options) {
  Json json{{"steps", options.steps},
              {"time_limit_ms", options.time_limit.count()},
              {"seed", options.seed},
              {"policy", options.policy},
              {"proposers", options.proposers},
              {"drafts", options.drafts},
              {"history_seeds", options.history_seeds},
              {"stall_steps", options.stall_steps},
              {"target_speedup", options.target_speedup},
              {"stop_near_floor", options.stop_near_floor},
              {"build_ahead", options.build_ahead},
              {"confirm_count", options.confirm_count},
              {"confirm_on_stop", options.confirm_on_stop}};
  if (!options.reuse) json["reuse"] = false;
  if (!options.models.names.empty()) json["models"] = encode(options.models);
  return json;
}

Json config_of_submissions() { return {{"kind", kSubmissions}}; }

Result<SearchOptions> decode_search_options(const Json& json) {
  const auto kind = json.find("kind");
  if (kind != json.end() && *kind == kSubmissions) {
    return Error{Errc::conflict,
                 "the run holds kernels that were handed in from outside and no search, so there "
                 "is nothing to go on with or to play again; `kernelevolve graph ls` lists runs."};
  }
  Fields fields = TRY(Fields::of(json, "the run's configuration"));
  SearchOptions options;
  options.steps = TRY(fields.get<int64_t>("steps"));
  options.time_limit = Milliseconds{TRY(fields.get<int64_t>("time_limit_ms"))};
  options.seed = TRY(fields.get<uint64_t>("seed"));
  options.policy = TRY(fields.get<std::string>("policy"));
  options.proposers = TRY(fields.get<std::vector<std::string>>("proposers"));
  options.drafts = TRY(fields.get<int64_t>("drafts"));
  options.history_seeds = TRY(fields.get<int64_t>("history_seeds"));
  options.stall_steps = TRY(fields.get<int64_t>("stall_steps"));
  options.target_speedup = TRY(fields.get<double>("target_speedup"));
  options.stop_near_floor = TRY(fields.get<bool>("stop_near_floor"));
  options.build_ahead = TRY(fields.get<int32_t>("build_ahead"));
  options.confirm_count = TRY(fields.get<int32_t>("confirm_count"));
  options.confirm_on_stop = TRY(fields.get<bool>("confirm_on_stop"));
  options.reuse = TRY(fields.get_or<bool>("reuse", true));
  if (const Json* models = fields.find("models")) options.models = TRY(decode_models(*models));
  TRY(fields.finish());
  return options;
}

Result<SearchOptions> run_options(const GraphReader& graph, RunId run) {
  const RunRow row = TRY(graph.run(run));
  return decode_search_options(TRY(parse_json(row.config)));
}

}  // namespace ke
