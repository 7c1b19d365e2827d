// SPDX-License-Identifier: Apache-2.0
//
// The main jobs on one problem: search for a kernel, go on with a run, judge a kernel at hand.
#pragma once

#include <optional>
#include <stop_token>
#include <string>

#include "app/kept_kernels.hpp"
#include "app/optimize_report.hpp"
#include "app/session.hpp"
#include "base/events.hpp"
#include "base/result.hpp"
#include "domain/evaluation.hpp"
#include "domain/kernel_profile.hpp"
#include "search/search.hpp"

namespace ke::app {

struct OptimizeRequest {
  SessionOptions session;
  SearchOptions search;
  std::string out;  // where the best kernel's source goes; empty: into the workspace
  // Of this problem and target, from other workspaces: the search begins with them.
  std::vector<KeptKernel> kernels = {};
  bool judge_only = false;  // these kernels are judged anew, and nothing is searched
};

Result<OptimizeReport> optimize(const OptimizeRequest& request, Workspace& workspace,
                                EventSink& events, std::stop_token stop);

// Continues run `run` (0: the latest); its options come from the workspace.
Result<OptimizeReport> resume(int64_t run, const std::string& out, Workspace& workspace,
                              EventSink& events, std::stop_token stop);

// How the problem of a run was opened, as noted when the run began.
Result<SessionOptions> session_of_run(const Workspace& workspace, RunId run);

// What `verify` and `bench` found about one kernel file.
struct JudgeReport {
  std::string problem;
  std::string target;
  std::string kernel_path;
  std::string precision;
  Evaluation evaluation;
  std::optional<KernelProfile> profile;  // of an accepted kernel, when asked for
  int64_t floor_ns = 0;
  double wall_s = 0;
};

struct JudgeRequest {
  SessionOptions session;
  std::string kernel_path;
  bool measure = false;  // bench
  bool profile = false;
};

Result<JudgeReport> judge(const JudgeRequest& request, Workspace& workspace, EventSink& events);

Json encode(const JudgeReport& report);  // the object of DESIGN section 7, as far as it applies

}  // namespace ke::app
