// SPDX-License-Identifier: Apache-2.0
#include "propose/model/context_memory.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/json.hpp"
#include "embedded/ke_prompts.hpp"
#include "llm/answer_json.hpp"
#include "propose/model/plan_edit.hpp"
#include "propose/model/prompt.hpp"
#include "propose/model/text.hpp"

namespace ke {
namespace {

constexpr size_t kEvidenceMax = 8;
constexpr size_t kLessonsMax = 12;
constexpr size_t kDirectivesMax = 6;
constexpr size_t kEntryBytesMax = 400;

std::string_view reader_of(ModelStyle style) {
  return style == ModelStyle::source
             ? "writes the whole source of the next kernel"
             : "edits the plan: directives have to be other fusions or decisions of schedules";
}

// False when there is no plan to edit.
bool show_parents(const ProposalContext& context, ModelStyle style, model::Material& material) {
  const bool crossed = context.parents.size() > 1;
  if (style == ModelStyle::plan) {
    const std::optional<synth::Genome> genome = model::base_genome(context);
    if (!genome) return false;
    material.base = model::base_plan_section(context, *genome);
    const auto second = crossed ? synth::genome_of(context, context.parents[1].node) : std::nullopt;
    if (second) material.other = model::other_plan_section(context, context.parents[1], *second);
    return true;
  }
  if (context.parents.empty()) return true;
  material.base = model::source_section(embedded::base_source_md, context.parents[0]);
  if (crossed) {
    material.other = model::source_section(embedded::other_source_md, context.parents[1]);
  }
  return true;
}

Result<std::vector<std::string>> lines_field(Fields& fields, const char* key, size_t count_max) {
  std::vector<std::string> lines = TRY(fields.get<std::vector<std::string>>(key));
  if (lines.size() > count_max) {
    return Error{Errc::invalid, fmt::format("'{}' has {} entries, and {} are allowed", key,
                                            lines.size(), count_max)};
  }
  for (std::string& line : lines) {
    if (line.size() > kEntryBytesMax) {
      return Error{Errc::invalid, fmt::format("an entry of '{}' has {} bytes, and {} are allowed",
                                              key, line.size(), kEntryBytesMax)};
    }
    line = model::one_line(line, kEntryBytesMax);
    if (line.empty()) return Error{Errc::invalid, fmt::format("an entry of '{}' is empty", key)};
  }
  return lines;
}

Result<Diagnosis> diagnosis_from(const Json& json) {
  Fields fields = TRY(Fields::of(json, "the diagnosis"));
  Diagnosis diagnosis;
  diagnosis.bound = TRY(fields.get<std::string>("bound"));
  if (std::ranges::find(kBounds, diagnosis.bound) == kBounds.end()) {
    return Error{Errc::invalid, fmt::format("'bound' is none of {}", fmt::join(kBounds, ", "))};
  }
  diagnosis.evidence = TRY(lines_field(fields, "evidence", kEvidenceMax));
  diagnosis.tried = TRY(lines_field(fields, "tried", kLessonsMax));
  diagnosis.directives = TRY(lines_field(fields, "directives", kDirectivesMax));
  if (diagnosis.directives.empty()) return Error{Errc::invalid, "'directives' names nothing to do"};
  if (!fields.finish()) {
    return Error{Errc::invalid, "it has a field beside bound, evidence, tried and directives"};
  }
  return diagnosis;
}

}  // namespace

Result<std::optional<ModelTask>> make_memory_task(const ProposalContext& given, ModelStyle style,
                                                  const PromptOptions& options) {
  ModelTask task{.style = style,
                 .agent = Agent::context_memory,
                 .kind = given.kind,
                 .memory = given.memory};
  ProposalContext context = given;
  TRY(model::add_profile(context, options.ground));
  model::Material material;
  if (!show_parents(context, style, material)) return std::optional<ModelTask>();
  if (!context.parents.empty()) task.ground.profile = context.parents.front().profile;
  task.diagnosis = TRY(diagnose(context));
  material.stable = fmt::format("{}\n{}", embedded::role_memory_md, embedded::answer_memory_md);
  material.problem = fmt::format("{}\n{}", model::problem_section(context),
                                 model::hardware_section(context.machine));
  material.problem_source = model::problem_source_section(context.problem);
  if (context.problem.graph) material.graph = ir::print(*context.problem.graph);
  material.attempts = task.diagnosis.tried;
  material.diagnosis = model::fill(embedded::diagnosis_start_md,
                                   {{"bound", task.diagnosis.bound},
                                    {"evidence", model::bullets(task.diagnosis.evidence)},
                                    {"directives", model::bullets(task.diagnosis.directives)}});
  if (task.ground.profile) material.profile = model::profile_section(*task.ground.profile);
  const bool draft = context.parents.empty();
  material.request = model::fill(
      embedded::request_memory_md,
      {{"subject", draft ? "the operator on this machine" : "the node to start from"},
       {"reader", reader_of(style)}});
  model::Assembled assembled = TRY(model::assemble(material, options));
  task.request.stable = std::move(assembled.stable);
  task.request.messages = {{llm::Role::user, std::move(assembled.message)}};
  task.contract.sources = false;
  return std::optional<ModelTask>(std::move(task));
}

tl::expected<Diagnosis, llm::AnswerProblem> read_diagnosis(std::string_view answer,
                                                           llm::FinishReason finish) {
  const llm::JsonResult json = llm::parse_json_answer(answer, finish, "the diagnosis");
  if (!json) return tl::make_unexpected(json.error());
  Result<Diagnosis> diagnosis = diagnosis_from(*json);
  if (diagnosis) return std::move(*diagnosis);
  return tl::make_unexpected(llm::AnswerProblem{
      llm::AnswerFault::bad_fields,
      fmt::format("The diagnosis cannot be used: {}.", diagnosis.error().message)});
}

}  // namespace ke
