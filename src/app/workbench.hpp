// SPDX-License-Identifier: Apache-2.0
//
// The problems that a coding agent works on, each with its session and its desk. A problem is named
// by its file and opened when it is first needed, again when the file has changed; of too many, the
// one that was not used for longest is closed. The workspace is locked from the first problem on.
//
// Threads: one call at a time.
#pragma once

#include <filesystem>
#include <list>
#include <memory>
#include <optional>
#include <string>

#include "app/session.hpp"
#include "app/submission.hpp"
#include "app/workspace.hpp"
#include "base/digest.hpp"
#include "base/events.hpp"
#include "base/result.hpp"

namespace ke::app {

// What a writer of kernels is told about a problem: as text (shapes, graph, contract), and as data.
struct ProblemSheet {
  std::string problem;
  std::string contract;
  std::string json;
};

class Workbench {
 public:
  // `options` name no problem; they hold for all of them.
  Workbench(SessionOptions options, std::filesystem::path workspace)
      : options_(std::move(options)), folder_(std::move(workspace)) {}
  ~Workbench();

  const std::string& target() const { return options_.target; }
  const std::filesystem::path& folder() const { return folder_; }

  // Emits "stage" events while PyTorch starts. Errors are sentences, as Session::open.
  Result<SubmissionDesk*> desk(const std::string& problem_path, EventSink& events);
  Result<ProblemSheet> sheet(const std::string& problem_path, EventSink& events);
  // Everything that was recorded here, whatever the problem.
  Result<GraphReader> graph();

 private:
  struct OpenProblem {
    std::filesystem::path path;
    Digest contents;  // of the file and its sidecar, as they were when it was opened
    std::unique_ptr<Session> session;
    std::unique_ptr<SubmissionDesk> desk;
  };

  Result<Workspace*> workspace();
  Result<OpenProblem*> open(const std::string& problem_path, EventSink& events);

  SessionOptions options_;
  std::filesystem::path folder_;
  std::optional<Workspace> workspace_;
  std::list<OpenProblem> open_;  // the one used last comes first
};

}  // namespace ke::app
