// SPDX-License-Identifier: Apache-2.0
//
// Edits of a source as models write them: search/replace blocks and unified diffs. Lines must match
// but for blanks at their ends; line numbers are hints only, because models count badly.
#pragma once

#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "llm/answer.hpp"

namespace ke::llm {

// Lines to find and what to put in their place.
struct Edit {
  std::vector<std::string> before;
  std::vector<std::string> after;
  int64_t line_hint = -1;  // where `before` should begin, from 0; -1: unknown
};

template <class T>
using OrProblem = tl::expected<T, AnswerProblem>;
using EditsResult = OrProblem<std::vector<Edit>>;

bool holds_search_marker(std::string_view text);
bool holds_hunk(std::string_view text);

// <<<<<<< SEARCH … ======= … >>>>>>> REPLACE. What stands between blocks is passed over.
EditsResult parse_search_replace(std::string_view text);
// Hunks of a unified diff. `strict`: a line that belongs to no hunk ends a hunk only outside of a
// fence, where prose may follow.
EditsResult parse_diff(std::string_view text, bool strict);

// Applies the edits in order. The result differs from the base.
OrProblem<std::string> apply_edits(std::string_view base, const std::vector<Edit>& edits);

tl::unexpected<AnswerProblem> problem(AnswerFault fault, std::string sentence);

}  // namespace ke::llm
