// SPDX-License-Identifier: Apache-2.0
//
// The field's words for what people say in others: a table, so that a search for one finds pages
// that use the other.
#pragma once

#include <array>
#include <span>
#include <string_view>

namespace ke::knowledge {

struct Synonym {
  std::string_view said;                  // a word or a phrase, lower case
  std::array<std::string_view, 4> meant;  // words or phrases to look for as well; may be empty
};

std::span<const Synonym> all_synonyms();

}  // namespace ke::knowledge
