// SPDX-License-Identifier: Apache-2.0
//
// Several shape cases of one problem as one evaluator: a candidate is built once and judged in each
// case, in order, by that case's own judge. The first rejection decides and names the case; an
// accepted candidate's figures are the means over the cases (domain/evaluation.hpp).
#pragma once

#include <memory>
#include <vector>

#include "eval/evaluator.hpp"

namespace ke {

struct ShapeCase {
  std::unique_ptr<Evaluator> judge;
  Oracle* oracle = nullptr;  // the judge's; outlives it
};

// `cases` has at least two, case 0 first. Threads as in evaluator.hpp, with one difference: a build
// freezes the timing of case 0 only, so while another case is judged, builds wait.
std::unique_ptr<Evaluator> make_case_evaluator(std::vector<ShapeCase> cases);

}  // namespace ke
