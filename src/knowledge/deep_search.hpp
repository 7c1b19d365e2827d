// SPDX-License-Identifier: Apache-2.0
//
// From a diagnosis of a kernel to the documents that whoever writes the next one should read. In
// two stages, as a person would: first the index (titles, topics, first paragraphs), then the pages
// themselves. It needs no model.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "knowledge/library.hpp"

namespace ke::knowledge {

struct Diagnosis {
  std::string target;  // empty: any
  std::optional<Bound> bound;
  std::vector<std::string> evidence;    // "40 % of bandwidth", "each row is read three times"
  std::vector<std::string> operations;  // of the problem: "softmax", "aten.mm.default"
  std::vector<std::string> skeletons;   // of the kernel: "reduce"
  std::vector<std::string> tried;       // "block 32 -> 64": pages about these come later
};

struct DeepSearchLimits {
  int64_t documents_max = 6;
  int64_t tokens_max = 8000;  // of all chosen documents together
};

struct Chosen {
  const Document* document = nullptr;
  double score = 0;
  int64_t tokens = 0;  // estimated_tokens() of its text
  std::string reason;  // which part of the diagnosis it answers; for a skill also its evidence
};

// Best first. A document that does not fit into what is left of the budget is passed over for the
// next one.
Result<std::vector<Chosen>> deep_search(Library& library, const Diagnosis& diagnosis,
                                        const DeepSearchLimits& limits = {});

// "leaky_relu" of "aten.leaky_relu.default"; anything else is left as it is.
std::string_view operation_name(std::string_view operation);

// What a text costs in a prompt, before any model's tokenizer has seen it: a token is about four
// bytes of English or code.
int64_t estimated_tokens(std::string_view text);

}  // namespace ke::knowledge
