// SPDX-License-Identifier: Apache-2.0
//
// Replays of recorded runs, and what a model was or would be sent about a node. Neither needs
// PyTorch: what they have to know of the problem was kept with the run.
#pragma once

#include <filesystem>
#include <stop_token>
#include <string>
#include <vector>

#include "app/workspace.hpp"
#include "base/events.hpp"
#include "base/result.hpp"
#include "search/replay.hpp"

namespace ke::app {

struct ReplayRequest {
  std::filesystem::path recording;  // written by `graph export`
  bool judge_again = false;
  std::filesystem::path workspace;  // for judging again
};

struct ReplayResult {
  std::string problem;
  ReplayReport report;
  bool judged_again = false;
  std::vector<OtherVerdict> others;
};

Result<ReplayResult> replay(const ReplayRequest& request, EventSink& events, std::stop_token stop);

// The prompt that the node came from; for a node that no model wrote, what `llm` would be sent to
// improve it.
Result<std::string> prompt_text(NodeId node, Workspace& workspace);

}  // namespace ke::app
