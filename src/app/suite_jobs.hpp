// SPDX-License-Identifier: Apache-2.0
//
// A suite by several processes at once: each is this program, with a workspace that the first one
// has opened, and takes problems that nobody else has.
#pragma once

#include <stop_token>
#include <string>
#include <vector>

#include "app/suite.hpp"
#include "app/workspace.hpp"
#include "base/events.hpp"
#include "base/result.hpp"

namespace ke::app {

// Runs `jobs` processes with the command line of this one and `marker`, which must make them call
// run_suite alone and end. What they say goes to jobs/<n>.log of the workspace; what they found is
// told here, a line a problem. Then tries again, alone, what could not be run beside others.
Result<std::vector<OptimizeReport>> run_suite_jobs(const SuiteRequest& request, int jobs,
                                                   const std::string& marker,
                                                   Workspace& workspace, EventSink& events,
                                                   const std::stop_token& stop);

}  // namespace ke::app
