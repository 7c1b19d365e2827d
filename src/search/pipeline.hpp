// SPDX-License-Identifier: Apache-2.0
//
// Builds candidates ahead and judges one at a time, on two workers beside the engine's thread. The
// engine decides what is judged when, so the order of results is the engine's, never the workers'.
#pragma once

#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "base/ids.hpp"
#include "base/result.hpp"
#include "eval/evaluator.hpp"

namespace ke {

class Pipeline {
 public:
  explicit Pipeline(Evaluator& evaluator);
  // Drops what is queued, waits for what is running.
  ~Pipeline();
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  // Queues a build. Returns at once.
  void build(NodeId node, std::string source);
  // Judges a node given to build(), as soon as it is built. One at a time: wait() comes between.
  void judge(NodeId node, const JudgeOptions& options);
  // The evaluation of the node given to judge().
  Result<Evaluation> wait();

 private:
  struct BuildJob {
    NodeId node;
    std::string source;
  };
  struct JudgeJob {
    NodeId node;
    JudgeOptions options;
  };

  void run_builder(std::stop_token stop);
  void run_judge(std::stop_token stop);
  Result<Evaluation> judge_built(const Result<Artifact>& artifact, const JudgeOptions& options);

  Evaluator& evaluator_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable_any changed_;
  std::deque<BuildJob> to_build_;
  std::map<NodeId, Result<Artifact>> built_;
  std::optional<JudgeJob> to_judge_;
  std::optional<Result<Evaluation>> judged_;
  std::jthread builder_;  // last: the workers use everything above
  std::jthread judge_;
};

}  // namespace ke
