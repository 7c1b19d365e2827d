// SPDX-License-Identifier: Apache-2.0
//
// Puts a prompt together from its sections (templates in prompts/) within a budget of tokens. What
// gives way first: documents, the profile, the history (oldest first), the graph, the second
// parent. The contract, the problem, the diagnosis and the base never do.
#pragma once

#include <string>
#include <vector>

#include "propose/model/task.hpp"
#include "propose/synth/genome.hpp"

namespace ke::model {

// Sections are whole texts that begin with a heading; an empty one is left out.
struct Material {
  std::string stable;
  std::string problem;
  std::string problem_source;           // empty: the graph is all there is, and has to fit
  std::string graph;                    // the graph printed, not yet a section
  std::vector<std::string> attempts;    // sentences, the ones that matter most first
  std::string diagnosis;
  std::string profile;
  std::vector<PromptDocument> documents;  // best first
  std::string base;
  std::string other;
  std::string request;
};

struct Assembled {
  std::string stable;
  std::string message;
  std::vector<std::string> documents;  // paths of those that went in
  bool has_other = false;
};

// Errc::refused with a sentence when even the shortest prompt is too long.
Result<Assembled> assemble(const Material& material, const PromptOptions& options);

// --- Sections -----------------------------------------------------------------------------------

// How a source for the target is written and built, and what the judge demands of it.
std::string contract_section(const Target& target);
// `tools`: whether the model may use some.
std::string stable_section(const ProposalContext& context, ModelStyle style, bool tools);
std::string hardware_section(const MachineProfile& machine);
std::string problem_section(const ProposalContext& context);
// The problem's file when it is a text of reasonable size, else nothing.
std::string problem_source_section(const Problem& problem);
std::string diagnosis_section(const Diagnosis& diagnosis);
std::string diagnosis_by_model_section(const Diagnosis& diagnosis);
std::string profile_section(const KernelProfile& profile);
std::string source_section(std::string_view text, const ParentView& parent);  // base_source…
std::string base_plan_section(const ProposalContext& context, const synth::Genome& genome);
std::string other_plan_section(const ProposalContext& context, const ParentView& parent,
                               const synth::Genome& genome);
std::string bullets(const std::vector<std::string>& lines);  // "- none" when there are none

// --- For every prompt ---------------------------------------------------------------------------

// Has the base profiled, unless it was rejected: then it is judged by its rejection.
Result<void> add_profile(ProposalContext& context, GroundSource* source);
// The conversation goes on: the answer, and what is said to it.
llm::CompletionRequest go_on_with(const llm::CompletionRequest& request, std::string_view answer,
                                  std::string message);

}  // namespace ke::model
