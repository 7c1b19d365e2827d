// SPDX-License-Identifier: Apache-2.0
//
// What a target has beyond the contract when its dialect can call the framework's own operators:
// it prints whole models from the exported graph, so that any problem with a graph has a source.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "domain/problem.hpp"
#include "ir/plan.hpp"
#include "target/target.hpp"

namespace ke {

// Stateless and safe to call from many threads. All cases of a problem, in order.
class ModelPrinter {
 public:
  virtual ~ModelPrinter() = default;

  // Every decision that exists for this model; the names are those of a schedule.
  virtual std::vector<ScheduleChoice> model_choices(
      std::span<const Problem* const> cases) const = 0;

  // Missing decisions take the preferred value. Errc::unavailable when a case has no graph.
  virtual Result<std::string> print_model(std::span<const Problem* const> cases,
                                          const ir::Schedule& schedule) const = 0;
};

}  // namespace ke
