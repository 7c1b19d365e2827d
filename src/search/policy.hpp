// SPDX-License-Identifier: Apache-2.0
//
// The contract of a selection policy: which nodes to build on next. A policy is one file of
// search/policy/ that defines `extern const PolicyInfo policy_<file>`; CMake generates the
// registry.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/rng.hpp"
#include "domain/experience.hpp"

namespace ke {

// What selection knows of one node of the run.
struct Individual {
  NodeId id;
  int64_t step = 0;
  NodeKind kind = NodeKind::draft;
  std::vector<int> parents;       // positions in Population::individuals
  bool judged = false;            // false: still being built or judged
  std::optional<double> fitness;  // judged and accepted
  bool spent = false;             // no proposer had a new idea for it
};

// The run so far, in order of steps. Selection sees positions, never sources.
struct Population {
  std::vector<Individual> individuals;

  std::optional<int> best() const;    // highest fitness, the earlier one of equals
  std::vector<int> accepted() const;  // best first
  // Accepted ones that still have children to give, best first.
  std::vector<int> fertile() const;
};

struct Selection {
  NodeKind kind = NodeKind::draft;
  std::vector<int> parents;  // draft: none; mutate: one; cross: two, the one to build on first
  Memory memory = Memory::parents;
};

// Deterministic: select() depends on the population, what was observed and the generator alone, so
// a resumed run that observes the same results in the same order goes on as if never interrupted.
class Policy {
 public:
  virtual ~Policy() = default;

  // What to do at `step`. Population holds at least one fertile individual.
  virtual Selection select(const Population& population, int64_t step, Rng& rng) const = 0;

  // Takes the result of individuals[position] into account. Returns the statistics that changed.
  virtual std::vector<StatisticRow> observe(const Population& population, int position) = 0;
};

struct PolicyInfo {
  std::string_view name;  // "greedy"
  std::string_view help;  // one line
  std::unique_ptr<Policy> (*make)();
};

std::span<const PolicyInfo* const> all_policies();     // sorted by name
const PolicyInfo* find_policy(std::string_view name);  // null when unknown

// Mostly the parents' trajectory; one branch in eight starts without memory, because memory speeds
// the start and anchors the end.
Memory choose_memory(Rng& rng);

}  // namespace ke
