// SPDX-License-Identifier: Apache-2.0
#include "search/pipeline.hpp"

#include "base/assert.hpp"

namespace ke {

Pipeline::Pipeline(Evaluator& evaluator)
    : evaluator_(evaluator),
      builder_([this](std::stop_token stop) { run_builder(std::move(stop)); }),
      judge_([this](std::stop_token stop) { run_judge(std::move(stop)); }) {}

Pipeline::~Pipeline() {
  builder_.request_stop();
  judge_.request_stop();
  builder_.join();
  judge_.join();
}

void Pipeline::build(NodeId node, std::string source) {
  const std::lock_guard lock(mutex_);
  to_build_.push_back({node, std::move(source)});
  changed_.notify_all();
}

void Pipeline::judge(NodeId node, const JudgeOptions& options) {
  const std::lock_guard lock(mutex_);
  KE_ASSERT(!to_judge_ && !judged_);
  to_judge_ = JudgeJob{node, options};
  changed_.notify_all();
}

Result<Evaluation> Pipeline::wait() {
  std::unique_lock lock(mutex_);
  KE_ASSERT(to_judge_ || judged_);
  changed_.wait(lock, [this] { return judged_.has_value(); });
  Result<Evaluation> result = std::move(*judged_);
  judged_.reset();
  return result;
}

void Pipeline::run_builder(std::stop_token stop) {
  std::unique_lock lock(mutex_);
  while (changed_.wait(lock, stop, [this] { return !to_build_.empty(); })) {
    if (stop.stop_requested()) return;
    const BuildJob job = std::move(to_build_.front());
    to_build_.pop_front();
    lock.unlock();
    Result<Artifact> artifact = evaluator_.build(job.source);
    lock.lock();
    built_.emplace(job.node, std::move(artifact));
    changed_.notify_all();
  }
}

void Pipeline::run_judge(std::stop_token stop) {
  std::unique_lock lock(mutex_);
  const auto ready = [this] { return to_judge_ && built_.contains(to_judge_->node); };
  while (changed_.wait(lock, stop, ready)) {
    if (stop.stop_requested()) return;
    const JudgeJob job = *to_judge_;
    const Result<Artifact> artifact = std::move(built_.extract(job.node).mapped());
    lock.unlock();
    Result<Evaluation> evaluation = judge_built(artifact, job.options);
    lock.lock();
    to_judge_.reset();
    judged_ = std::move(evaluation);
    changed_.notify_all();
  }
}

Result<Evaluation> Pipeline::judge_built(const Result<Artifact>& artifact,
                                         const JudgeOptions& options) {
  if (!artifact) return artifact.error();
  Result<Evaluation> evaluation = artifact->failure ? Result<Evaluation>(*artifact->failure)
                                                    : evaluator_.judge(*artifact, options);
  if (evaluation) evaluation->build_ms = artifact->build_ms;
  return evaluation;
}

}  // namespace ke
