// SPDX-License-Identifier: Apache-2.0
//
// Lessons of a run, without a model: where a child's plan differs from its parent's by one or two
// decisions of one kernel and its speed by more than the noise of both, the change is what gained.
// Lessons are written as proposed skills; a person accepts or rejects them (`kb review`).
#pragma once

#include <filesystem>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "graph/graph.hpp"
#include "ir/program.hpp"
#include "knowledge/skill.hpp"

namespace ke::app {

// The best lessons of the run by the lower end of their gain, each with all its pairs as evidence.
// A change that gained in one pair of the run and lost in another is no lesson. Evaluations that
// were reused from other runs or flagged as doubtful are left out.
Result<std::vector<knowledge::Skill>> distill(const GraphReader& graph, RunId run,
                                              const ir::Program& program);

// Writes each as skills/ID.md below the folder. A lesson that is there already, in any status, gets
// the new evidence and keeps its status. Returns how many are new.
Result<int64_t> propose_skills(std::span<const knowledge::Skill> skills,
                               const std::filesystem::path& folder);

}  // namespace ke::app
