// SPDX-License-Identifier: Apache-2.0
#include "propose/model/task.hpp"

#include <fmt/format.h>

#include "base/json.hpp"
#include "embedded/ke_prompts.hpp"
#include "propose/model/plan_edit.hpp"
#include "propose/model/prompt.hpp"
#include "propose/model/text.hpp"

namespace ke {
namespace {

using model::Material;

constexpr size_t kNoteBytesMax = 200;
constexpr size_t kAnswerBytesMax = 48 << 10;  // of an answer that is shown again
constexpr size_t kToolBytesMax = 16 << 10;     // all tools give no more than a prompt is long
constexpr size_t kCutLineBytes = 64;           // of the line that says what was cut

bool was_rejected(const ParentView& parent) {
  return parent.evaluation && parent.evaluation->verdict != Verdict::accepted;
}

void add_source(const ProposalContext& context, ModelTask& task, Material& material) {
  task.contract.sources = true;
  if (context.problem.graph) material.graph = ir::print(*context.problem.graph);
  if (context.parents.empty()) {
    material.request = embedded::request_source_draft_md;
    return;
  }
  const ParentView& base = context.parents.front();
  task.contract.base = base.node.source;
  material.base = model::source_section(embedded::base_source_md, base);
  material.request = was_rejected(base) ? embedded::request_source_repair_md
                                    : embedded::request_source_mutate_md;
  if (context.parents.size() > 1) {
    material.other = model::source_section(embedded::other_source_md, context.parents[1]);
  }
}

// False when there is nothing to edit.
bool add_plan(const ProposalContext& context, ModelTask& task, Material& material) {
  task.contract.sources = false;
  task.contract.plans = true;
  const std::optional<synth::Genome> genome = model::base_genome(context);
  if (!genome) return false;
  material.base = model::base_plan_section(context, *genome);
  material.request = context.parents.empty() ? embedded::request_plan_draft_md
                                             : embedded::request_plan_mutate_md;
  if (context.parents.size() > 1) {
    if (const auto second = synth::genome_of(context, context.parents[1].node)) {
      material.other = model::other_plan_section(context, context.parents[1], *second);
    }
  }
  return true;
}

std::string_view cross_request(ModelStyle style) {
  return style == ModelStyle::source ? embedded::request_source_cross_md
                                     : embedded::request_plan_cross_md;
}

// Whether the second parent is shown decides what is asked, so that comes first.
Result<model::Assembled> assemble(const Material& material, ModelStyle style,
                                  const PromptOptions& options) {
  if (!material.other.empty()) {
    Material both = material;
    both.request = cross_request(style);
    model::Assembled assembled = TRY(model::assemble(both, options));
    if (assembled.has_other) return assembled;
  }
  Material alone = material;
  alone.other.clear();
  return model::assemble(alone, options);
}

Proposal proposal_from(const ModelTask& task, std::string source, std::string plan,
                       std::string_view note) {
  return {.source = std::move(source),
          .plan = std::move(plan),
          .parents = task.parents,
          .note = model::one_line(note, kNoteBytesMax)};
}

ModelProposal fault(std::string sentence) { return {std::nullopt, std::move(sentence)}; }

Result<ModelProposal> from_plan(const ProposalContext& context, const ModelTask& task,
                                const llm::Answer& answer) {
  const std::optional<synth::Genome> base = model::base_genome(context);
  if (!base) return fault("There is no plan to edit.");
  const size_t index = model::edited_case(context);
  const ir::Plan& before = base->cases[index].plan;
  const Result<ir::Plan> edited = model::edit_plan(context, before, answer.plan);
  if (!edited) {
    if (edited.error().code == Errc::invalid) return fault(edited.error().message);
    return edited.error();
  }
  auto one = synth::complete(context, context.programs[index], *edited);
  if (!one) return fault("The plan is not legal for the program.");
  if (one->plan == before) {
    return fault("The plan is the one you were given; change something that matters.");
  }
  const synth::Genome genome = base->with(index, std::move(*one));
  Result<std::string> source = synth::print(context, genome);
  if (!source) {
    if (source.error().code != Errc::unavailable) return source.error();
    return fault(fmt::format("The plan is legal, but no source can be printed from it: {}.",
                             model::one_line(source.error().message, 300)));
  }
  if (context.is_known(*source)) {
    return fault("This plan was tried before, or prints the same kernel as one that was; try "
                 "another.");
  }
  return ModelProposal{
      proposal_from(task, std::move(*source), synth::stored(genome), answer.note), {}};
}

// The documents that a model chose, or those that the search without one finds.
Result<std::vector<PromptDocument>> documents_for(const ProposalContext& context,
                                                  const Diagnosis& diagnosis,
                                                  const PromptOptions& options) {
  if (context.advice == nullptr || !context.advice->documents) {
    return options.ground->documents(context, diagnosis, options.documents_tokens_max);
  }
  std::vector<PromptDocument> documents;
  for (const ChosenDocument& chosen : *context.advice->documents) {
    std::optional<PromptDocument> document = TRY(options.ground->read(chosen.path));
    if (!document) continue;
    document->reason = chosen.reason;
    documents.push_back(std::move(*document));
  }
  return documents;
}

}  // namespace

namespace model {

llm::CompletionRequest go_on_with(const llm::CompletionRequest& request, std::string_view answer,
                                  std::string message) {
  llm::CompletionRequest next = request;
  std::string said = head(as_utf8(answer), kAnswerBytesMax);
  // Endpoints refuse an empty message.
  if (said.find_first_not_of(" \t\n") == std::string::npos) said = "(nothing)";
  next.messages.push_back({llm::Role::assistant, std::move(said)});
  next.messages.push_back({llm::Role::user, std::move(message)});
  return next;
}

Result<void> add_profile(ProposalContext& context, GroundSource* source) {
  if (source == nullptr || context.parents.empty()) return {};
  ParentView& base = context.parents.front();
  if (base.profile || !base.evaluation || was_rejected(base)) return {};
  base.profile = TRY(source->profile(base.node));
  return {};
}

}  // namespace model

Result<std::optional<ModelTask>> make_task(const ProposalContext& given, ModelStyle style,
                                           const PromptOptions& options) {
  ModelTask task{.style = style, .kind = given.kind, .memory = given.memory};
  ProposalContext context = given;
  TRY(model::add_profile(context, options.ground));
  Material material;
  if (style == ModelStyle::source) {
    add_source(context, task, material);
  } else if (!add_plan(context, task, material)) {
    return std::optional<ModelTask>();
  }
  if (!context.parents.empty()) task.ground.profile = context.parents.front().profile;
  task.diagnosis = TRY(diagnose(context));
  material.attempts = task.diagnosis.tried;  // by the rows, whatever a model makes of them
  material.diagnosis = model::diagnosis_section(task.diagnosis);
  if (context.advice != nullptr && context.advice->diagnosis) {
    task.diagnosis = *context.advice->diagnosis;
    task.ground.diagnosis = task.diagnosis;
    material.diagnosis = model::diagnosis_by_model_section(task.diagnosis);
  }
  if (options.ground != nullptr) {
    task.ground.documents = TRY(documents_for(context, task.diagnosis, options));
    material.documents = task.ground.documents;
  }
  task.contract.tools = options.ground != nullptr && style == ModelStyle::source;
  material.stable = model::stable_section(context, style, task.contract.tools);
  material.problem = model::problem_section(context);
  material.problem_source = model::problem_source_section(context.problem);
  if (task.ground.profile) material.profile = model::profile_section(*task.ground.profile);
  model::Assembled assembled = TRY(assemble(material, style, options));
  task.request.stable = std::move(assembled.stable);
  task.request.messages = {{llm::Role::user, std::move(assembled.message)}};
  task.documents = std::move(assembled.documents);
  if (!context.parents.empty()) {
    task.parents.push_back(context.parents.front().node.id);
    if (assembled.has_other) task.parents.push_back(context.parents[1].node.id);
    if (task.kind == NodeKind::cross && !assembled.has_other) task.kind = NodeKind::mutate;
  }
  return std::optional<ModelTask>(std::move(task));
}

Result<ModelProposal> proposal_of(const ProposalContext& context, const ModelTask& task,
                                  const llm::AnswerResult& answer) {
  if (!answer) return fault(answer.error().sentence);
  if (answer->form == llm::AnswerForm::plan) {
    if (task.style != ModelStyle::plan) return fault("A source was asked for, not a plan.");
    return from_plan(context, task, *answer);
  }
  if (task.style != ModelStyle::source) return fault("A plan was asked for, not a source.");
  if (answer->tool) return ModelProposal{.proposal = {}, .fault = {}, .call = answer->tool};
  if (context.is_known(answer->source)) {
    return fault("This kernel was tried before; change something that matters.");
  }
  return ModelProposal{proposal_from(task, answer->source, {}, answer->note), {}};
}

llm::CompletionRequest follow_up(const ModelTask& task, std::string_view answer,
                                 std::string_view fault_sentence) {
  const std::string wrong = model::as_utf8(fault_sentence);
  const std::string_view text = task.agent == Agent::proposal ? embedded::fault_md
                                                              : embedded::fault_advice_md;
  return model::go_on_with(task.request, answer, model::fill(text, {{"fault", wrong}}));
}

std::string tool_text(std::string_view text) {
  std::string clean = model::as_utf8(text);
  if (clean.size() <= kToolBytesMax) return clean;
  return model::head(clean, kToolBytesMax - kCutLineBytes);
}

llm::CompletionRequest go_on(const ModelTask& task, std::string_view answer, const ToolUse& use,
                             int left) {
  const std::string call = model::one_line(dump_json(llm::encode(use.call)), kNoteBytesMax);
  const std::string next =
      left > 0 ? fmt::format("You may use {} more tool{}, or answer with your kernel.", left,
                             left == 1 ? "" : "s")
               : std::string("No other tool can be used: answer with your kernel.");
  return model::go_on_with(
      task.request, answer,
      model::fill(embedded::tool_result_md,
                  {{"call", call}, {"result", model::fenced(use.result)}, {"left", next}}));
}

}  // namespace ke
