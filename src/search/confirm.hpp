// SPDX-License-Identifier: Apache-2.0
//
// The end of a run: the best of many noisy figures flatters, so the top candidates are judged again
// with fresh seeds, processes and samples, and only those figures are reported (DESIGN D4).
#pragma once

#include "search/search.hpp"

namespace ke {

struct Confirmation {
  NodeId best;                           // 0 when no candidate passed
  std::optional<Evaluation> evaluation;  // its confirmed one
};

// Judges the `count` best distinct accepted nodes of the run again, and further ones while none has
// passed (at most twice as many in all). A node that the run has confirmed already keeps that
// figure. A user's stop ends it once one has passed.
Result<Confirmation> confirm_best(const SearchDependencies& dependencies, RunId run, int64_t count);

}  // namespace ke
