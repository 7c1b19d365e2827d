// SPDX-License-Identifier: Apache-2.0
//
// Aggregates a suite's results: the table, and headlines that hide nothing (failures are counted,
// never averaged in; with and without flagged problems).
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "app/optimize_report.hpp"
#include "base/result.hpp"

namespace ke::app {

// Reads JSON lines; of several rows of one problem and target the last counts.
Result<std::vector<OptimizeReport>> parse_suite_results(std::string_view text);

// Of all rows of a problem, whatever their targets: an accepted one before all others, the fastest
// of those, else the last; with the fastest form of the library's that any of the rows knows. In
// natural order of the names.
std::vector<OptimizeReport> best_of_each_problem(const std::vector<OptimizeReport>& rows);

struct SuiteSummary {
  int64_t problems = 0;
  int64_t accepted = 0;
  int64_t failed = 0;        // could not be run at all
  int64_t slower_eager = 0;  // accepted, slower than eager, not a tie
  // Geometric means over accepted problems; 0 when there is none.
  double geomean = 0;  // against the better baseline of each problem
  double geomean_unflagged = 0;
  double geomean_eager = 0;
  double geomean_compile = 0;
  double geomean_library = 0;  // against the library's fastest form, where one was judged
  double geomean_graph = 0;  // a replay against eager's, where both were captured
  double median = 0;
  double median_eager = 0;
  int64_t libraries = 0;                   // with a figure against the library's forms
  int64_t graphs = 0;                      // with a figure for replays
  std::map<std::string, int64_t> classes;  // of accepted kernels that are not slower than eager
};

SuiteSummary summarize(const std::vector<OptimizeReport>& rows);

// A table a problem a line, then the summary in words.
std::string suite_text(const std::vector<OptimizeReport>& rows);
std::string suite_html(const std::vector<OptimizeReport>& rows);

}  // namespace ke::app
