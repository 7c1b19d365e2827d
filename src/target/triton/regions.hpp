// SPDX-License-Identifier: Apache-2.0
//
// Which part of a graph is computed how. A *region* is a connected part that holds pointwise work
// and reductions alone, so that Triton kernels can compute it at once; everything else, and any
// region that is not chosen or not printable, is calls of the library.
#pragma once

#include <string>
#include <vector>

#include "ir/graph.hpp"
#include "ir/plan.hpp"

namespace ke::triton {

struct Region {
  std::vector<int> nodes;  // of the graph, in order
  std::vector<ir::ValueId> inputs, outputs;
  ir::Program program;  // of these nodes: inputs and outputs in the same order
  std::vector<ir::FusedKernel> kernels;
};

struct Step {
  int node = -1;    // a library call
  int region = -1;  // or a region
};

struct ModelPlan {
  std::vector<Step> steps;  // in order of execution; dead nodes are left out
  std::vector<Region> regions;
};

// Which nodes the outputs depend on, operand by operand.
std::vector<bool> live_nodes(const ir::Graph& graph);

// Every region that there may be.
ModelPlan partition(const ir::Graph& graph);

// The plan with the regions that are not `kept` as library calls.
ModelPlan without(const ir::Graph& graph, const ModelPlan& plan, const std::vector<bool>& kept);

}  // namespace ke::triton
