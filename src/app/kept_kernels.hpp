// SPDX-License-Identifier: Apache-2.0
//
// The best kernels of many problems as a file of JSON lines, so that a search can go on in another
// workspace, on another machine, and a report can judge them again. Two such files put one after
// the other are one.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/digest.hpp"
#include "base/json_fwd.hpp"
#include "base/result.hpp"
#include "graph/graph.hpp"

namespace ke::app {

struct KeptKernel {
  std::string problem;    // its name
  Digest problem_digest;  // a kernel of another text of the problem is of no use
  std::string target;
  std::string kernel_class;  // own, mixed, library
  std::string proposer;
  std::string plan;  // JSON; empty: none
  std::string source;
  double fitness = 0;  // when it was kept: only to choose by
  bool confirmed = false;
};

Json encode(const KeptKernel& kernel);

// Reads JSON lines; a line cut by a kill at the end is left out. Errc::invalid, with the line's
// number, for anything else.
Result<std::vector<KeptKernel>> parse_kept_kernels(std::string_view text);
Result<std::vector<KeptKernel>> read_kept_kernels(const std::string& path);

// Of each problem and target the `count` best, confirmed ones first, and the best of class library
// if it isn't among them; equal sources once. In natural order of the problems, best first.
std::vector<KeptKernel> best_kernels(std::vector<KeptKernel> kernels, int64_t count);

// The accepted kernels of the workspace's problems, chosen in the same way.
Result<std::vector<KeptKernel>> kernels_of(const GraphReader& graph, int64_t count);

// Adds them to the file, keeping what is there unless it is surpassed. Returns how many it holds.
Result<int64_t> keep_kernels(const GraphReader& graph, const std::string& path, int64_t count);

// Those of one problem by name, best first; `only_best_target`: none when the best one is another
// target's.
std::vector<KeptKernel> kernels_for(std::span<const KeptKernel> kernels, std::string_view problem,
                                    std::string_view target, bool only_best_target);

}  // namespace ke::app
