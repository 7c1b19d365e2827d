// SPDX-License-Identifier: Apache-2.0
//
// A question's words, made fit for full text search: no word of it is ever query syntax.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ke::knowledge {

// Lower-case words in order, without duplicates, stop words, plain numbers and single letters.
// Everything but letters, digits and bytes of UTF-8 separates; at most kTermsMax.
std::vector<std::string> terms_of(std::string_view text);

// What the field also calls what the text speaks of, by the table in synonyms.cpp: words and
// phrases that are not among the text's own.
std::vector<std::string> synonyms_of(std::string_view text);

// "cache line" of "the cache line is full": terms that stand side by side, each pair once.
std::vector<std::string> pairs_of(std::string_view text);

// An FTS5 expression that finds any of the terms: each quoted, so that nothing in it is syntax.
// Empty when there are none.
std::string match_any(const std::vector<std::string>& terms);

inline constexpr int64_t kTermsMax = 128;

}  // namespace ke::knowledge
