// SPDX-License-Identifier: Apache-2.0
#include "search/description.hpp"

#include <filesystem>

#include "base/json.hpp"

namespace ke {

Json encode(const RunDescription& description) {
  Json models = Json::array();
  for (const ModelInfo& model : description.models) {
    models.push_back({{"name", model.name}, {"priced", model.priced}});
  }
  Json cases = Json::array();
  for (const Problem& problem : description.cases) cases.push_back(encode(problem));
  const std::filesystem::path file(description.cases.front().path);
  return Json{{"cases", std::move(cases)},
              {"machine", encode(description.machine)},
              {"file", file.filename().string()},
              {"source", description.source},
              {"models", std::move(models)},
              {"conditions", description.conditions}};
}

Result<RunDescription> decode_run_description(const Json& json) {
  Fields fields = TRY(Fields::of(json, "the run's description"));
  RunDescription description;
  const Json cases = TRY(fields.get<Json>("cases"));
  for (const Json& problem : cases) description.cases.push_back(TRY(decode_problem(problem)));
  if (description.cases.empty()) {
    return Error{Errc::invalid, "the run's description names no problem"};
  }
  const std::string file = TRY(fields.get<std::string>("file"));
  for (Problem& problem : description.cases) problem.path = file;
  description.machine = TRY(decode_machine_profile(TRY(fields.get<Json>("machine"))));
  description.source = TRY(fields.get<std::string>("source"));
  const Json models = TRY(fields.get<Json>("models"));
  for (const Json& model : models) {
    Fields entry = TRY(Fields::of(model, "a model"));
    description.models.push_back(
        {TRY(entry.get<std::string>("name")), TRY(entry.get<bool>("priced"))});
    TRY(entry.finish());
  }
  description.conditions = TRY(fields.get<std::string>("conditions"));
  TRY(fields.finish());
  return description;
}

}  // namespace ke
