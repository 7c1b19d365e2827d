// SPDX-License-Identifier: Apache-2.0
//
// What was tried before, as far as the context's memory operator shows it: how its parents came to
// be, and what else was made from them. A draft has no parents; its history are the run's other
// drafts, unless it is a clean restart (Memory::nothing).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/plan.hpp"
#include "propose/proposer.hpp"

namespace ke::model {

// Against its first parent.
enum class Effect : uint8_t { unknown, rejected, slower, same, faster };

struct Attempt {
  NodeId node;
  NodeKind kind = NodeKind::draft;
  std::string what;                      // one line: what was changed
  std::optional<Evaluation> evaluation;  // absent: not judged yet
  Effect effect = Effect::unknown;
  std::optional<double> gain;  // speed-up over its first parent, when both were accepted
};

struct History {
  std::vector<Attempt> trajectory;  // the parents and their ancestors, newest first
  std::vector<Attempt> siblings;    // other children of the parents, newest first
};

Result<History> history_of(const ProposalContext& context);

// "kernel 0 (reduce): block 32 -> 64; kernel 1 (map): unroll 1 -> 4", or what became of the fusion.
// Empty when the plans are equal.
std::string difference(const ir::Plan& from, const ir::Plan& to);

// "#12, mutate by synth: block 32 -> 64. Accepted, 12.3 us, 1.31 x eager; 1.05 x its parent."
std::string sentence(const Attempt& attempt);

// "12.3 us"
std::string duration(double ns);

// "accepted, 12.3 us a call, 1.31 times as fast as eager", "wrong_output: …"
std::string outcome(const std::optional<Evaluation>& evaluation);

}  // namespace ke::model
