// SPDX-License-Identifier: Apache-2.0
//
// Synthesis for targets that print whole models (target/model_printer.hpp). The genome is the
// decisions alone: what they are about, the target finds in the graph again.
#pragma once

#include <optional>

#include "propose/proposer.hpp"
#include "target/model_printer.hpp"

namespace ke::synth {

// Drafts: what the target prefers, then each decision of the whole model turned, then drawn ones.
// A mutation changes one or two decisions of the parent; a crossing takes each from either.
Result<std::optional<Proposal>> whole_model(const ProposalContext& context,
                                            const ModelPrinter& printer, Rng& rng);

}  // namespace ke::synth
