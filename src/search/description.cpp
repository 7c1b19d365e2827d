// SPDX-License-Identifier: Apache-2.0
#include "search/description.hpp"

#include <filesystem>

#include "base/json.hpp"
#include "os/file_system.hpp"
#include "search/search.hpp"

namespace ke {
namespace {

constexpr int64_t kSourceBytesMax = 1 << 20;

}  // namespace

RunDescription describe(const SearchDependencies& dependencies) {
  RunDescription description{.cases = {},
                             .machine = dependencies.machine,
                             .source = {},
                             .models = {},
                             .conditions = dependencies.conditions};
  for (const Problem* problem : dependencies.cases) description.cases.push_back(*problem);
  if (description.cases.empty()) description.cases.push_back(dependencies.problem);
  // The file is for prompts alone, which take no long ones.
  auto source = os::read_file(dependencies.problem.path, kSourceBytesMax);
  if (source) description.source = std::move(*source);
  if (dependencies.models) description.models = dependencies.models->list();
  return description;
}

Result<Scope> scope_of(const SearchDependencies& dependencies) {
  const Problem& problem = dependencies.problem;
  const ProblemId id = TRY(dependencies.graph.add_problem(
      {.name = problem.name, .path = problem.path, .digest = problem.digest}));
  const std::string toolchain =
      TRY(dependencies.target.toolchain()) + "; " + to_text(dependencies.conditions);
  return Scope{id, dependencies.target_name, std::move(toolchain)};
}

std::vector<const Problem*> several_cases(const RunDescription& description) {
  std::vector<const Problem*> cases;
  if (description.cases.size() == 1) return cases;
  for (const Problem& problem : description.cases) cases.push_back(&problem);
  return cases;
}

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
              {"conditions", encode(description.conditions)}};
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
  description.conditions = TRY(decode_conditions(TRY(fields.get<Json>("conditions"))));
  TRY(fields.finish());
  return description;
}

}  // namespace ke
