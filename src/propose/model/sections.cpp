// SPDX-License-Identifier: Apache-2.0
//
// The sections of a prompt, one function each, in the order of the prompt.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/json.hpp"
#include "domain/roofline.hpp"
#include "embedded/ke_kernel_header.hpp"
#include "embedded/ke_prompts.hpp"
#include "os/file_system.hpp"
#include "propose/model/history.hpp"
#include "propose/model/plan_edit.hpp"
#include "propose/model/prompt.hpp"
#include "propose/model/text.hpp"

namespace ke::model {
namespace {

constexpr int64_t kProblemBytesMax = 32_KiB;
constexpr size_t kHotLoopLinesMax = 60;
constexpr size_t kRemarksMax = 20;

std::string bytes_text(int64_t bytes) {
  if (bytes >= int64_t{1} << 20) {
    return fmt::format("{:.4g} MiB", static_cast<double>(bytes) / 0x1p20);
  }
  return fmt::format("{:.4g} KiB", static_cast<double>(bytes) / 0x1p10);
}

// The build's command with plain names for the files.
std::string command_of(const Target& target) {
  const Result<BuildRecipe> recipe = target.recipe("");
  if (!recipe) return "the target's compiler";
  std::string text;
  for (std::string word : recipe->command) {
    const std::pair<std::string_view, std::string_view> names[] = {
        {"{source}", recipe->source_name}, {"{output}", recipe->output_name},
        {"{include}", "include"}};
    for (const auto& [from, to] : names) {
      const size_t at = word.find(from);
      if (at != std::string::npos) word.replace(at, from.size(), to);
    }
    text += (text.empty() ? "" : " ") + word;
  }
  return text;
}

std::string tensor_lines(std::string_view list, const std::vector<TensorSpec>& specs) {
  std::string text;
  for (size_t i = 0; i < specs.size(); ++i) {
    const TensorSpec& spec = specs[i];
    text += fmt::format("- {}[{}] {}: {}[{}]", list, i, one_line(spec.name, 80),
                        enum_name(spec.dtype), fmt::join(spec.shape, ", "));
    if (spec.strides != ir::contiguous_strides(spec.shape)) {
      text += fmt::format(", strides [{}]", fmt::join(spec.strides, ", "));
    }
    if (list == "inputs") text += fmt::format(", {}", enum_name(spec.kind));
    text += "\n";
  }
  return text.empty() ? "- none\n" : text;
}

std::string lines_of(const std::vector<std::string>& lines, size_t count_max) {
  std::string text;
  for (size_t i = 0; i < std::min(lines.size(), count_max); ++i) {
    text += without_paths(lines[i]) + "\n";
  }
  return text;
}

std::string outcome_line(const ParentView& parent) {
  return fmt::format("Node {}: {}.", parent.node.id.value, outcome(parent.evaluation));
}

// Stages by number, since plans name them so.
std::string numbered(const ir::Program& program) {
  std::string text;
  const std::string printed = ir::print(program);
  std::string_view rest = printed;
  for (int stage = 0; !rest.empty();) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.starts_with("stage ")) {
      line.remove_prefix(std::string_view("stage ").size());
      text += fmt::format("stage {} writes ", stage++);
    }
    text += fmt::format("{}\n", line);
  }
  return text;
}

std::string values_text(const std::vector<int64_t>& values) {
  return fmt::format("{}", fmt::join(values, ", "));
}

std::string case_lines(std::span<const Problem* const> cases) {
  std::string text =
      "\nOne source serves these shape cases, so read extents from the tensors; the shapes above "
      "are those of case 0:\n\n";
  for (size_t i = 0; i < cases.size(); ++i) {
    text += fmt::format("- case {}: {}\n", i, one_line(shapes_of(*cases[i]), 400));
  }
  return text;
}

}  // namespace

std::string bullets(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += fmt::format("- {}\n", line);
  return text.empty() ? "- none" : text;
}

std::string hardware_section(const MachineProfile& machine) {
  const auto giga = [](double rate) { return fmt::format("{:.1f}", rate / 1e9); };
  return fill(embedded::hardware_md, {{"cpu", one_line(machine.cpu, 400)},
                                      {"threads", fmt::format("{}", machine.threads)},
                                      {"vector_bytes", fmt::format("{}", machine.vector_bytes)},
                                      {"l1", bytes_text(machine.l1_bytes)},
                                      {"l2", bytes_text(machine.l2_bytes)},
                                      {"llc", bytes_text(machine.llc_bytes)},
                                      {"flops_single", giga(machine.flops_f32_single)},
                                      {"flops_all", giga(machine.flops_f32_all)},
                                      {"bandwidth_single", giga(machine.bandwidth_single)},
                                      {"bandwidth_all", giga(machine.bandwidth_all)},
                                      {"bandwidth_llc", giga(machine.bandwidth_llc_all)}});
}

std::string contract_section(const Target& target) {
  const std::string contract = fill(embedded::contract_source_md,
                                    {{"command", fenced(command_of(target))},
                                     {"header", fenced(embedded::kernel_h)},
                                     {"guide", target.guide()}});
  return fmt::format("{}\n{}", contract, embedded::rules_source_md);
}

std::string stable_section(const ProposalContext& context, ModelStyle style, bool tools) {
  const std::string hardware = hardware_section(context.machine);
  if (style == ModelStyle::plan) {
    return fmt::format("{}\n{}\n{}\n{}", embedded::role_plan_md, embedded::rules_plan_md, hardware,
                       embedded::answer_plan_md);
  }
  std::string text =
      fmt::format("{}\n{}\n{}\n{}", embedded::role_source_md, contract_section(context.target),
                  hardware, embedded::answer_source_md);
  if (!tools) return text;
  const std::string calls = fmt::format("{}", kToolCallsMax);
  return text + "\n" + fill(embedded::tools_source_md, {{"calls", calls}});
}

std::string problem_section(const ProposalContext& context) {
  const Problem& problem = context.problem;
  const Roofline roof = roofline(problem, context.machine, true);
  std::string computing;
  if (roof.flops > 0) {
    computing = fmt::format(", its {:.3g} million operations take {}", roof.flops / 1e6,
                            duration(roof.computing_ns));
  }
  std::string tensors =
      fmt::format("Inputs, in this order:\n\n{}\nOutputs, contiguous:\n\n{}",
                  tensor_lines("inputs", problem.inputs), tensor_lines("outputs", problem.outputs));
  if (!context.cases.empty()) tensors += case_lines(context.cases);
  const double floor = std::max(roof.moving_ns, roof.computing_ns);
  return fill(embedded::problem_md, {{"name", one_line(problem.name, 160)},
                                     {"tensors", tensors},
                                     {"floor", duration(floor)},
                                     {"bytes", fmt::format("{:.3g}", roof.bytes / 1e6)},
                                     {"moving", duration(roof.moving_ns)},
                                     {"computing", computing}});
}

std::string problem_source_section(const Problem& problem) {
  if (problem.path.empty()) return {};
  const Result<std::string> text = os::read_file(problem.path, kProblemBytesMax);
  if (!text || text->empty() || text->find('\0') != std::string::npos) return {};
  return fill(embedded::problem_source_md, {{"source", fenced(*text, "python")}});
}

std::string diagnosis_section(const Diagnosis& diagnosis) {
  return fill(embedded::diagnosis_md, {{"bound", diagnosis.bound},
                                       {"evidence", bullets(diagnosis.evidence)},
                                       {"directives", bullets(diagnosis.directives)}});
}

std::string diagnosis_by_model_section(const Diagnosis& diagnosis) {
  return fill(embedded::diagnosis_by_model_md, {{"bound", diagnosis.bound},
                                                {"evidence", bullets(diagnosis.evidence)},
                                                {"tried", bullets(diagnosis.tried)},
                                                {"directives", bullets(diagnosis.directives)}});
}

std::string profile_section(const KernelProfile& profile) {
  if (profile.hot_loop.empty() && profile.compiler_remarks.empty()) return {};
  return fill(embedded::profile_md,
              {{"function", one_line(profile.function, 120)},
               {"hot_loop", fenced(lines_of(profile.hot_loop, kHotLoopLinesMax))},
               {"remarks", fenced(lines_of(profile.compiler_remarks, kRemarksMax))}});
}

std::string source_section(std::string_view text, const ParentView& parent) {
  return fill(text,
              {{"outcome", outcome_line(parent)}, {"source", fenced(parent.node.source)}});
}

std::string base_plan_section(const ProposalContext& context, const synth::Genome& genome) {
  const size_t index = edited_case(context);
  const synth::CaseGenome& shown = genome.cases[index];
  std::string kernels;
  for (size_t i = 0; i < shown.kernels.size(); ++i) {
    kernels += fmt::format("- kernel {} ({}), {} by the cost model\n", i,
                           enum_name(shown.plan.kernels[i].skeleton),
                           duration(shown.estimates_ns[i]));
    for (const ScheduleChoice& choice : shown.choices[i]) {
      kernels += fmt::format("  - {} is {}; legal: {}{}{}\n", choice.name,
                             shown.plan.kernels[i].schedule.at(choice.name),
                             values_text(choice.values), choice.meaning.empty() ? "" : ". It is: ",
                             choice.meaning);
    }
  }
  std::string text = context.parents.empty() ? "It was not judged yet."
                                             : outcome_line(context.parents.front());
  if (genome.cases.size() > 1) {
    text += fmt::format(" It is the plan for one of {} shape cases; the others keep theirs.",
                        genome.cases.size());
  }
  return fill(embedded::base_plan_md,
              {{"outcome", text},
               {"program", fenced(numbered(context.programs[index]))},
               {"plan", fenced(dump_json(ir::encode(shown.plan)), "json")},
               {"kernels", kernels}});
}

std::string other_plan_section(const ProposalContext& context, const ParentView& parent,
                               const synth::Genome& genome) {
  const ir::Plan& plan = genome.cases[edited_case(context)].plan;
  return fill(embedded::other_plan_md,
              {{"outcome", outcome_line(parent)},
               {"plan", fenced(dump_json(ir::encode(plan)), "json")}});
}

}  // namespace ke::model
