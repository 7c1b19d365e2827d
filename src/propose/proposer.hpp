// SPDX-License-Identifier: Apache-2.0
//
// The universal operator: maps (parents, context) to a new candidate. A proposer is one file of
// propose/operator/ that defines `extern const ProposerInfo proposer_<file>`; CMake generates the
// registry.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/rng.hpp"
#include "domain/evaluation.hpp"
#include "domain/experience.hpp"
#include "domain/kernel_profile.hpp"
#include "domain/machine.hpp"
#include "domain/problem.hpp"
#include "graph/graph.hpp"
#include "ir/plan.hpp"
#include "target/target.hpp"

namespace ke {

struct Advice;

// A node the selection policy chose, as far as the memory operator shows it.
struct ParentView {
  NodeRow node;
  std::optional<Evaluation> evaluation;  // absent while it is being judged
  std::optional<KernelProfile> profile;  // absent when nobody took one
};

// What a proposer works with. All references outlive the call.
struct ProposalContext {
  const Problem& problem;                       // of case 0
  std::span<const Problem* const> cases = {};   // all shape cases where there are several
  std::span<const ir::Program> programs;  // one a shape case; empty when one cannot be lowered
  const Target& target;
  const MachineProfile& machine;

  NodeKind kind = NodeKind::draft;  // draft, mutate or cross
  std::vector<ParentView> parents;  // draft: none; mutate: one; cross: two, the base first
  Memory memory = Memory::parents;
  const GraphReader& graph;  // for the trajectory and the siblings, as `memory` allows
  RunId run;

  const Advice* advice = nullptr;  // of sub-agents, for proposers that ask models

  // Whether this run already holds the same kernel (normalised source). Proposers skip what is
  // known.
  std::function<bool(std::string_view source)> is_known;
};

struct Proposal {
  std::string source;
  std::string plan;             // JSON of the genome; empty when the source has none
  std::vector<NodeId> parents;  // those it used, of the context's
  std::string note;             // one line: what changed
};

// Stateless: everything is in the context and the generator. Safe to call from many threads.
class Proposer {
 public:
  virtual ~Proposer() = default;

  // Nothing when it has no (new) idea for this context. An Error only when the system failed.
  virtual Result<std::optional<Proposal>> propose(const ProposalContext& context,
                                                  Rng& rng) const = 0;
};

struct ProposerInfo {
  std::string_view name;  // "synth"
  std::string_view help;  // one line
  std::unique_ptr<Proposer> (*make)();
};

std::span<const ProposerInfo* const> all_proposers();      // sorted by name
const ProposerInfo* find_proposer(std::string_view name);  // null when unknown

}  // namespace ke
