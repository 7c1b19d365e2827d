// SPDX-License-Identifier: Apache-2.0
//
// Lowers a graph of ATen operations to tensor expressions. One file per family of rules; CMake
// generates the list of families from the files of this folder (each defines
// `extern const LoweringFamily lowering_<file>`).
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.hpp"
#include "ir/graph.hpp"
#include "ir/program.hpp"

namespace ke::ir {

// What a rule works with: the graph, the program under construction, and where each value lives.
class LoweringContext;

using LoweringRule = Result<void> (*)(LoweringContext& context, const Node& node);

struct LoweringFamily {
  std::string_view name;                                         // "pointwise", for listings
  std::vector<std::pair<std::string_view, LoweringRule>> rules;  // "aten.add.Tensor" -> rule
};

// The program of the whole graph, verified. An output's row-major elements are the graph's; its
// shape may group them otherwise ([6, 5] for [2, 3, 5]), so that a last reshape costs nothing.
// Errc::unavailable names the first operation that no rule covers.
Result<Program> lower(const Graph& graph);

std::vector<std::string_view> lowered_operations();  // sorted; for docs and the fuzzer

}  // namespace ke::ir
