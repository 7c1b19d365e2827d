// SPDX-License-Identifier: Apache-2.0
//
// Plans as a model edits them: a short list of edits, or a whole plan, as JSON. The text is hostile
// input; what comes out is legal for the program and for the target.
//
//   {"edits": [{"op": "set", "kernel": 0, "decision": "unroll", "value": 4},
//              {"op": "skeleton", "kernel": 0, "to": "reduce"},
//              {"op": "merge", "kernels": [0, 1]},
//              {"op": "split", "kernel": 2, "before": 5},
//              {"op": "inline", "stage": 3},
//              {"op": "keep", "stage": 3, "kernel": 1}]}
//
// Kernels keep the numbers they have in the base; a kernel made by split or keep gets the next.
#pragma once

#include <optional>
#include <string_view>

#include "propose/synth/genome.hpp"

namespace ke::model {

// The plans that a task starts from: the first parent's, or greedy fusion for a draft. Nothing when
// there is no program, or the parent has no plan that is still legal.
std::optional<synth::Genome> base_genome(const ProposalContext& context);

// Whose plan is shown and edited: the first shape case that computes something. The other cases
// keep theirs. There has to be a program.
size_t edited_case(const ProposalContext& context);

// Another plan for the edited case. Errc::invalid with a sentence for the next prompt when the edit
// is malformed or not legal.
Result<ir::Plan> edit_plan(const ProposalContext& context, const ir::Plan& base,
                           std::string_view json);

}  // namespace ke::model
