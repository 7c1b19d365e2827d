// SPDX-License-Identifier: Apache-2.0
//
// Answers of the oracle as values. Everything is checked against what is already known of the
// problem, so that a confused oracle becomes an error here and not a fault later.
#pragma once

#include <string>
#include <vector>

#include "base/json_fwd.hpp"
#include "base/result.hpp"
#include "domain/problem.hpp"
#include "oracle/connection.hpp"
#include "oracle/oracle.hpp"

namespace ke::oracle {

struct Description {
  Problem problem;                      // without name, path and digest
  std::vector<std::string> mutated;     // inputs that forward() writes
  std::vector<std::string> reassigned;  // module attributes that forward() replaces
};
Result<Description> decode_description(const Json& json);

struct MadeSet {
  InputSet set;
  bool float64_truth = true;
};
// Takes the descriptors: inputs first, then values and ignore of each truth.
Result<MadeSet> decode_set(const Json& json, const Problem& problem, Descriptors descriptors);

}  // namespace ke::oracle
