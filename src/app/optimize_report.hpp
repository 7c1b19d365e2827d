// SPDX-License-Identifier: Apache-2.0
//
// The result of optimizing one problem, in the shape that `--json` prints, `suite run` appends and
// `suite report` reads (DESIGN section 7). Unknown numbers are null in JSON and empty here.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/json_fwd.hpp"
#include "base/result.hpp"
#include "domain/evaluation.hpp"
#include "search/search.hpp"

namespace ke::app {

// What language models cost a run, and what it got for it.
struct ModelCosts {
  int64_t calls = 0;
  int64_t tokens = 0;
  double usd = 0;        // 0 as well when no price is known
  int64_t kernels = 0;   // that models wrote
  int64_t accepted = 0;  // of those
  ModelCost sub_agents = {};  // of calls, tokens and usd: before proposals
};

struct OptimizeReport {
  std::string problem;  // path below the suite root, without .py
  std::string target;
  std::string verdict;  // "accepted", the most frequent rejection, or "failed": see error
  std::optional<double> speedup_vs_eager;
  std::optional<double> speedup_vs_compile;
  std::optional<int64_t> time_ns;  // cold median
  std::optional<int64_t> floor_ns;
  std::optional<int64_t> eager_ns;
  std::optional<int64_t> compile_ns;
  std::optional<int64_t> graph_ns;        // a replay of the captured call; devices only
  std::optional<int64_t> graph_eager_ns;  // the same of eager
  // What the fastest kernel of class library, a form of the library's, won against the better
  // baseline; empty: none was judged.
  std::optional<double> form_speedup;
  std::string kernel_path;  // empty: none
  int64_t node = 0;         // 0: none
  int64_t run = 0;
  int64_t steps = 0;
  int64_t evaluated = 0;
  int64_t accepted = 0;
  std::map<std::string, int64_t> rejected;  // verdict -> count
  std::vector<std::string> flags;
  std::string kernel_class;
  std::string precision;
  uint64_t seed = 0;
  double wall_s = 0;
  std::string ended;  // why the search stopped
  // Of the best kernel. Empty with one shape case; not read back from JSON.
  std::vector<CaseResult> cases;
  std::optional<ModelCosts> models;  // absent: a run without
  std::string error;  // suite rows of problems that could not be run

  // Takes over what an evaluation says of one kernel: flags, class, times.
  void fill_figures(const Evaluation& evaluation);
  // baseline / candidate against the better baseline, when there is one.
  std::optional<double> speedup() const;
  // Against the library's fastest form: the better baseline, or a kernel of class library.
  std::optional<double> speedup_vs_library() const;
};

Json encode(const OptimizeReport& report);
Result<OptimizeReport> decode_optimize_report(const Json& json);

}  // namespace ke::app
