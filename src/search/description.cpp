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
  const std::filesystem::path file(description.problem.path);
  return Json{{"problem", encode(description.problem)},
              {"machine", encode(description.machine)},
              {"file", file.filename().string()},
              {"source", description.source},
              {"models", std::move(models)},
              {"conditions", description.conditions}};
}

Result<RunDescription> decode_run_description(const Json& json) {
  Fields fields = TRY(Fields::of(json, "the run's description"));
  RunDescription description;
  description.problem = TRY(decode_problem(TRY(fields.get<Json>("problem"))));
  description.problem.path = TRY(fields.get<std::string>("file"));
  description.machine = TRY(decode_machine_profile(TRY(fields.get<Json>("machine"))));
  description.source = TRY(fields.get<std::string>("source"));
  for (const Json& model : TRY(fields.get<Json>("models"))) {
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
