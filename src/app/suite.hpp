// SPDX-License-Identifier: Apache-2.0
//
// Many problems in a row: finds them, optimizes each, appends one result a problem, so that a
// killed suite goes on where it stopped. Several processes may work on one suite: each claims a
// problem before it begins (a lock file in the workspace), and skips what others have.
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
  std::vector<KeptKernel> kernels = {};  // each problem's search begins with its own
  bool judge_only = false;               // judge them anew: those of each best one's target
  bool mixed = false;  // in an order that scatters neighbours, which are alike in size
};

// Whether a row says all that a run of its problem can: a problem that could not be run, or whose
// search was cut short, is tried again.
bool is_final(const OptimizeReport& row);

// Problems of a folder in natural order (level, number, name). A folder that holds level1, level2…
// (or KernelBench/level1…) is a suite of levels; any other folder is a flat one.
// Errc::invalid when nothing is left after selection; with judge_only, those without a kernel go.
Result<std::vector<SuiteProblem>> find_problems(const SuiteRequest& request);

// Returns all rows of the results file. A problem that cannot be run is a row with an error, one
// that was cut short by `stop` a row that ended so, if it found anything.
Result<std::vector<OptimizeReport>> run_suite(const SuiteRequest& request, Workspace& workspace,
                                              EventSink& events, std::stop_token stop);

}  // namespace ke::app
