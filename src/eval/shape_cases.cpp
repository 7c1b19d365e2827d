// SPDX-License-Identifier: Apache-2.0
#include "eval/shape_cases.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <optional>
#include <shared_mutex>

#include "base/assert.hpp"
#include "eval/budget.hpp"

namespace ke {
namespace {

// Per-case times of the fastest accepted candidate, under the mean that callers know it by.
struct Best {
  int64_t mean_ns = 0;
  std::vector<int64_t> case_ns;
};

class CaseEvaluator final : public Evaluator {
 public:
  explicit CaseEvaluator(std::vector<ShapeCase> cases) : cases_(std::move(cases)) {
    KE_ASSERT(cases_.size() > 1);
  }

  Result<Artifact> build(const std::string& source) override {
    const std::shared_lock building(building_);
    return cases_.front().judge->build(source);
  }
  Result<KernelProfile> profile(const std::string& source) override {
    const std::shared_lock building(building_);
    return cases_.front().judge->profile(source);
  }
  Result<EventCounts> count_events(const std::string& source) override {
    return cases_.front().judge->count_events(source);
  }
  Result<Evaluation> judge(const Artifact& artifact, const JudgeOptions& options) override;
  Result<std::vector<std::string>> admission_flags() override;
  int64_t floor_ns() const override;

 private:
  bool counted(size_t index) const {
    return cases_[index].oracle->problem().output_bytes() > 0;
  }
  Result<Evaluation> judge_case(size_t index, const Artifact& artifact, JudgeOptions options);
  void conclude(Evaluation& whole);

  std::vector<ShapeCase> cases_;
  std::shared_mutex building_;  // shared by builds, alone for what they must not disturb
  std::optional<Best> best_;
};

// The flags that every case which counts has: what holds for one case alone is a detail of it. That
// calls differ is a matter of the kernel, in whichever case it shows.
std::vector<std::string> common_flags(const std::vector<CaseResult>& cases) {
  const bool any_counted = std::ranges::any_of(cases, &CaseResult::counted);
  std::vector<std::string> common;
  for (const CaseResult& candidate : cases) {
    for (const std::string& flag : candidate.flags) {
      const bool everywhere = flag == kNondeterministicFlag ||
                              std::ranges::all_of(cases, [&](const CaseResult& one) {
        return (any_counted && !one.counted) ||
               std::ranges::find(one.flags, flag) != one.flags.end();
      });
      const bool fresh = std::ranges::find(common, flag) == common.end();
      if (everywhere && fresh) common.push_back(flag);
    }
  }
  return common;
}

// What a case adds to the evaluation of the whole.
void merge(Evaluation& whole, const Evaluation& one) {
  whole.verdict = one.verdict;
  whole.detail = one.detail;
  whole.diagnostics = one.diagnostics;
  whole.build_ms = one.build_ms;
  whole.judge_ms += one.judge_ms;
  whole.confirmed = one.confirmed;
  whole.stopped_early = whole.stopped_early || one.stopped_early;
  if (whole.protections.empty()) whole.protections = one.protections;
  if (one.kernel_class != "own") whole.kernel_class = one.kernel_class;
  keep_worst(whole.errors, one.errors);
}

Result<Evaluation> CaseEvaluator::judge(const Artifact& artifact, const JudgeOptions& options) {
  if (artifact.failure) return *artifact.failure;
  Evaluation whole;
  for (size_t i = 0; i < cases_.size(); ++i) {
    const Problem& problem = cases_[i].oracle->problem();
    const std::string name = fmt::format("case {} ({})", i, shapes_of(problem));
    Evaluation one = TRY(judge_case(i, artifact, options).context(name));
    merge(whole, one);
    if (one.verdict != Verdict::accepted) {
      whole.errors = std::move(one.errors);
      whole.detail = fmt::format("in {}: {}", name, one.detail);
      whole.cases.clear();
      return whole;
    }
    whole.cases.push_back({.shapes = shapes_of(problem),
                           .flags = std::move(one.flags),
                           .counted = counted(i),
                           .measurement = std::move(one.measurement)});
  }
  conclude(whole);
  return whole;
}

// One oracle runs at a time: a torch.compile that another one builds would disturb the clock.
Result<Evaluation> CaseEvaluator::judge_case(size_t index, const Artifact& artifact,
                                             JudgeOptions options) {
  for (size_t other = 0; other < cases_.size(); ++other) {
    if (other != index) cases_[other].oracle->pause();
  }
  if (options.best_ns) {
    const bool known = best_ && best_->mean_ns == *options.best_ns;
    options.best_ns = known ? std::optional(best_->case_ns[index]) : std::nullopt;
  }
  std::unique_lock<std::shared_mutex> quiet(building_, std::defer_lock);
  if (index > 0) quiet.lock();  // the first judge's own lock freezes builds while it times
  Result<Evaluation> evaluation = cases_[index].judge->judge(artifact, options);
  for (const ShapeCase& each : cases_) each.oracle->resume();
  return evaluation;
}

void CaseEvaluator::conclude(Evaluation& whole) {
  whole.flags = common_flags(whole.cases);
  whole.measurement = mean_of(whole.cases);
  if (!whole.measurement) return;
  if (best_ && best_->mean_ns <= whole.measurement->time_ns) return;
  best_ = Best{whole.measurement->time_ns, {}};
  for (const CaseResult& one : whole.cases) best_->case_ns.push_back(one.measurement->time_ns);
}

Result<std::vector<std::string>> CaseEvaluator::admission_flags() {
  std::vector<CaseResult> found;
  for (size_t i = 0; i < cases_.size(); ++i) {
    CaseResult one;
    one.flags = TRY(cases_[i].judge->admission_flags());
    one.counted = counted(i);
    found.push_back(std::move(one));
  }
  return common_flags(found);
}

// The mean over the same cases, and with the same least time, as that of measured times.
int64_t CaseEvaluator::floor_ns() const {
  std::vector<CaseResult> floors;
  for (size_t i = 0; i < cases_.size(); ++i) {
    Measurement floor;
    floor.time_ns = cases_[i].judge->floor_ns();
    floors.push_back({.shapes = "", .flags = {}, .counted = counted(i), .measurement = floor});
  }
  return mean_of(floors)->time_ns;
}

}  // namespace

std::unique_ptr<Evaluator> make_case_evaluator(std::vector<ShapeCase> cases) {
  return std::make_unique<CaseEvaluator>(std::move(cases));
}

}  // namespace ke
