// SPDX-License-Identifier: Apache-2.0
//
// What the outputs of a graph depend on: the rest is dead code. Algebra counts: a value minus
// itself depends on nothing.
#pragma once

#include <vector>

#include "ir/graph.hpp"

namespace ke::ir {

struct Needed {
  std::vector<bool> nodes;     // of each node: an output depends on a result of it
  std::vector<bool> values;    // of each value: an output depends on it
  std::vector<bool> constant;  // of each node: its result is the same for all finite operands
};

Needed needed_by_outputs(const Graph& graph);

}  // namespace ke::ir
