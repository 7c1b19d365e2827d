// SPDX-License-Identifier: Apache-2.0
//
// What a run was about, beside its rows: kept with it, so that it can be replayed on a machine
// without PyTorch.
#pragma once

#include <string>
#include <vector>

#include "base/json_fwd.hpp"
#include "base/result.hpp"
#include "domain/conditions.hpp"
#include "domain/experience.hpp"
#include "domain/machine.hpp"
#include "domain/problem.hpp"
#include "propose/model/models.hpp"

namespace ke {

struct RunDescription {
  std::vector<Problem> cases;  // one a shape case, at least one
  MachineProfile machine;
  std::string source;  // of the problem's file; empty when it could not be read
  std::vector<ModelInfo> models;
  Conditions conditions;
};

struct SearchDependencies;

// Of a run that begins now.
RunDescription describe(const SearchDependencies& dependencies);
// Where its nodes belong; the problem is entered when the graph does not know it.
Result<Scope> scope_of(const SearchDependencies& dependencies);

// All shape cases where there are several, as SearchDependencies and ProposalContext take them.
std::vector<const Problem*> several_cases(const RunDescription& description);

Json encode(const RunDescription& description);
Result<RunDescription> decode_run_description(const Json& json);

}  // namespace ke
