// SPDX-License-Identifier: Apache-2.0
#include "propose/model/tasks.hpp"

namespace ke {

std::optional<ModelStyle> style_of(std::string_view proposer) {
  for (const ModelStyle style : {ModelStyle::source, ModelStyle::plan}) {
    if (proposer == proposer_of(style)) return style;
  }
  return std::nullopt;
}

std::string_view proposer_of(ModelStyle style) {
  return style == ModelStyle::source ? "llm" : "strategist";
}

std::string asked_style(ModelStyle style, Agent agent) {
  std::string text(proposer_of(style));
  if (agent != Agent::proposal) text.append("/").append(enum_name(agent));
  return text;
}

Agent agent_of(std::string_view asked_style) {
  const size_t slash = asked_style.find('/');
  if (slash == std::string_view::npos) return Agent::proposal;
  return parse_enum<Agent>(asked_style.substr(slash + 1)).value_or(Agent::proposal);
}

}  // namespace ke
