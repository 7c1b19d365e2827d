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

}  // namespace ke
