// SPDX-License-Identifier: Apache-2.0
//
// The proposer `synth`: works on plans (DESIGN section 5) and has the target print them. Needs no
// model; needs a lowered program, or a target that prints whole models from the graph.
#include "propose/synth/genome.hpp"
#include "propose/synth/whole_model.hpp"

namespace ke {
namespace {

class Synth final : public Proposer {
 public:
  Result<std::optional<Proposal>> propose(const ProposalContext& context, Rng& rng) const override {
    if (const auto* printer = dynamic_cast<const ModelPrinter*>(&context.target)) {
      return synth::whole_model(context, *printer, rng);
    }
    if (context.programs.empty()) return std::optional<Proposal>();
    switch (context.kind) {
      case NodeKind::draft:
        return synth::draft(context, rng);
      case NodeKind::mutate:
        return synth::mutate(context, rng);
      case NodeKind::cross:
        return synth::cross(context, rng);
      case NodeKind::seed:
        break;
    }
    return std::optional<Proposal>();
  }
};

}  // namespace

extern const ProposerInfo proposer_synth;
const ProposerInfo proposer_synth{
    .name = "synth",
    .help = "plans kernels from the operator's graph and has the target print them",
    .make = [] { return std::unique_ptr<Proposer>(std::make_unique<Synth>()); }};

}  // namespace ke
