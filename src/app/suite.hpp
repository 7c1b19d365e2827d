// SPDX-License-Identifier: Apache-2.0
//
// Many problems in a row: finds them, optimizes each, appends one result a problem, so that a
// killed suite goes on where it stopped.
#pragma once

#include <stop_token>
#include <string>
#include <vector>

#include "app/optimize.hpp"

namespace ke::app {

struct SuiteProblem {
  std::string name;  // path below the suite root, without .py
  std::string path;
};

struct SuiteRequest {
  std::string suite;                // a folder, or "examples"
  std::vector<int> levels;          // empty: all
  std::vector<std::string> select;  // globs on names; empty: all
  SessionOptions session;           // without the problem
  SearchOptions search;
  std::string out;
  bool resume = false;
};

// Problems of a folder in natural order (level, number, name). A folder that holds level1, level2…
// (or KernelBench/level1…) is a suite of levels; any other folder is a flat one.
// Errc::invalid when nothing is left after selection.
Result<std::vector<SuiteProblem>> find_problems(const SuiteRequest& request);

// Returns all rows of the results file. A problem that cannot be run is a row with an error.
Result<std::vector<OptimizeReport>> run_suite(const SuiteRequest& request, Workspace& workspace,
                                              EventSink& events, std::stop_token stop);

}  // namespace ke::app
