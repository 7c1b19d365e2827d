// SPDX-License-Identifier: Apache-2.0
//
// The order of the checks: build and library policy, then correctness in the room, then timing
// under the lock. The first failure decides the verdict.
#include "eval/evaluator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <set>

#include "base/assert.hpp"
#include "base/rng.hpp"
#include "eval/admission.hpp"
#include "eval/build.hpp"
#include "eval/correctness.hpp"
#include "eval/event_counts.hpp"
#include "eval/floor.hpp"
#include "eval/kernel_profiler.hpp"
#include "eval/patience.hpp"
#include "eval/timing.hpp"
#include "eval/timing_lock.hpp"
#include "os/file_system.hpp"

namespace ke {
namespace {

constexpr int64_t kNsOfMs = 1'000'000;

class Judge final : public Evaluator {
 public:
  Judge(const EvaluatorOptions& options, std::unique_ptr<TimingLock> lock, Builder builder)
      : options_(options),
        lock_(std::move(lock)),
        builder_(std::move(builder)),
        sets_(*options.oracle, options.machine, options.limits, options.seed),
        baselines_(*options.oracle),
        rng_(Rng(options.seed).split("judge")),
        pool_(options.threads) {}

  Result<Artifact> build(const std::string& source) override { return builder_.build(source); }
  Result<KernelProfile> profile(const std::string& source) override {
    return profile_kernel({options_.target, options_.limits, lock_.get()}, source);
  }
  Result<Evaluation> judge(const Artifact& artifact, const JudgeOptions& options) override;
  Result<EventCounts> count_events(const std::string& source) override;
  Result<std::vector<std::string>> admission_flags() override;
  int64_t floor_ns() const override {
    return physical_floor_ns(problem(), options_.machine, sets_.cold());
  }

 private:
  const Problem& problem() const { return options_.oracle->problem(); }

  Result<void> start_host();
  Result<void> refresh_baselines(const JudgeOptions& options);
  Nanoseconds call_max(const JudgeOptions& options) const;
  std::vector<int> sets_to_check(Effort effort) const;
  Result<void> judge_loaded(runner::Runner& runner, int library_fd, const JudgeOptions& options,
                            Evaluation& evaluation);
  Result<void> time(runner::Runner& runner, int library_fd, const JudgeOptions& options,
                    CheckResult& checked, Evaluation& evaluation);

  EvaluatorOptions options_;
  std::unique_ptr<TimingLock> lock_;
  Builder builder_;
  std::mutex running_;  // held while a runner runs: guards what follows
  SetStore sets_;
  bool sets_unseen_ = true;  // by every candidate that was not being confirmed
  Baselines baselines_;
  std::map<int32_t, EmptyBatch> empty_batches_;
  Rng rng_;
  ThreadPool pool_;  // for comparing, while no candidate runs
  std::unique_ptr<runner::Host> host_;
  std::optional<std::vector<std::string>> admission_;
};

void reject(Evaluation& evaluation, const runner::RunnerFailure& failure) {
  evaluation.measurement.reset();
  evaluation.flags.clear();
  evaluation.verdict = failure.verdict;
  evaluation.detail = failure.detail;
}

// What the kernel has loaded by itself while it ran.
void look_at_loaded(const LibraryFinding& finding, Evaluation& evaluation) {
  if (finding.kernel_class != "own") evaluation.kernel_class = finding.kernel_class;
  if (!finding.violation) return;
  evaluation.verdict = Verdict::policy_violation;
  evaluation.detail = *finding.violation;
  evaluation.measurement.reset();
  evaluation.flags.clear();
  evaluation.confirmed = false;
}

// The library as a sealed memory file: a room that shows no artifacts folder can open it, and
// nobody can change it any more.
Result<os::FileDescriptor> library_for_room(const std::string& path) {
  const std::string bytes = TRY(os::read_file(path, int64_t{256} << 20));
  os::SharedMemory memory = TRY(os::SharedMemory::create(static_cast<int64_t>(bytes.size())));
  std::memcpy(memory.data(), bytes.data(), bytes.size());
  TRY(memory.seal_future_writes());
  return memory.reopen_read_only();
}

Result<void> Judge::start_host() {
  if (host_) return {};
  host_ = TRY(runner::Host::start(
      {options_.runner_command, options_.limits, options_.threads, options_.clock,
       visible_libraries(options_.libraries)}));
  return {};
}

// Screens trust what is known; full and confirm measure again.
Result<void> Judge::refresh_baselines(const JudgeOptions& options) {
  if (!TRY(baselines_.stale()) && options.effort == Effort::screen) return {};
  std::vector<int64_t> ids;
  for (const HeldSet* held : TRY(sets_.timing())) ids.push_back(held->set.id);
  const TimingLock::Held lock = lock_->hold();
  return baselines_.measure_all(ids);
}

Nanoseconds Judge::call_max(const JudgeOptions& options) const {
  return longest_call(options_.limits, options, baselines_.time_ns(BaselineKind::eager),
                      std::chrono::seconds(2));
}

// Screens leave out what would cost more than it tells: sets whose truth has to be made again, and
// for problems that take long, all but one probe. Full and confirm check everything.
std::vector<int> Judge::sets_to_check(Effort effort) const {
  std::vector<int> indices;
  const int64_t eager_ns = baselines_.time_ns(BaselineKind::eager).value_or(0);
  for (int i = 0; i < kCheckedSetCount; ++i) {
    const bool probe_of_heavy = i == 0 || kCheckedSets[i] == SetKind::mantissa_tail;
    const bool skip = effort == Effort::screen && i > 0 &&
                      (!sets_.resident(i) || (eager_ns > kHeavyNs && !probe_of_heavy));
    if (!skip) indices.push_back(i);
  }
  return indices;
}

Result<Evaluation> Judge::judge(const Artifact& artifact, const JudgeOptions& options) {
  if (artifact.failure) return *artifact.failure;
  const std::lock_guard running(running_);
  const Nanoseconds start = options_.clock->now();
  Evaluation evaluation;
  evaluation.build_ms = artifact.build_ms;
  TRY(start_host());
  // Long, and no reason to keep others from judging.
  if (options.measure && options.effort != Effort::screen) {
    TRY(baselines_.await_compile(*options_.clock, options_.limits.compiled_baseline_max));
  }
  const TimingLock::Turn turn = TRY(lock_->take_turn());
  // What the search was judged with is not what confirms; those confirmed in a row share new sets.
  if (options.effort == Effort::confirm && !sets_unseen_) sets_.renew();
  sets_unseen_ = options.effort == Effort::confirm;
  if (options.measure) TRY(refresh_baselines(options));

  const os::FileDescriptor library = TRY(library_for_room(artifact.built_path));
  const ElfSummary elf = TRY(summarize_elf(artifact.built_path));
  evaluation.kernel_class = check_libraries(elf, options_.libraries).kernel_class;

  Result<runner::Runner> spawned = host_->spawn();
  if (!spawned) {  // a host that broke is replaced once
    host_.reset();
    TRY(start_host());
    spawned = host_->spawn();
  }
  if (!spawned) return spawned.error();
  runner::Runner& runner = *spawned;
  evaluation.protections = runner.protections();
  const std::set<std::string> before = runner.code_files();
  const runner::Outcome loaded =
      TRY(runner.load(library.get(), problem(), call_max(options)));
  if (const auto* failure = failure_of(loaded)) {
    reject(evaluation, *failure);
  } else {
    TRY(judge_loaded(runner, library.get(), options, evaluation));
  }
  if (runner.alive()) {
    look_at_loaded(check_loaded(before, runner.code_files(), options_.libraries), evaluation);
  }
  runner.end();
  evaluation.judge_ms = (options_.clock->now() - start).count() / kNsOfMs;
  return evaluation;
}

Result<void> Judge::judge_loaded(runner::Runner& runner, int library_fd,
                                 const JudgeOptions& options, Evaluation& evaluation) {
  const CheckOptions check{options_.precision, options_.determinism,
                           sets_to_check(options.effort), call_max(options),
                           options.tell_values};
  CheckResult checked = TRY(check_correctness(runner, sets_, problem(), check, rng_, &pool_));
  const bool differed = checked.nondeterministic;
  const auto run_again = [&] {
    return check_further_runs(runner, sets_, problem(), check, rng_, &pool_, checked);
  };
  if (differed && !checked.failure) TRY(run_again());
  if (options.measure && !checked.failure) {
    TRY(time(runner, library_fd, options, checked, evaluation));
    // Two calls agreed while checking, and others did not while timing.
    if (checked.nondeterministic && !differed && !checked.failure) TRY(run_again());
  }
  evaluation.errors = checked.errors;
  if (checked.failure) {
    reject(evaluation, *checked.failure);
    return {};
  }
  evaluation.verdict = Verdict::accepted;
  evaluation.confirmed = options.effort == Effort::confirm;
  if (checked.nondeterministic) evaluation.flags.emplace_back(kNondeterministicFlag);
  for (const std::string& flag : TRY(admission_flags())) evaluation.flags.push_back(flag);
  return {};
}

Result<void> Judge::time(runner::Runner& runner, int library_fd, const JudgeOptions& options,
                         CheckResult& checked, Evaluation& evaluation) {
  const TimingLock::Held held = lock_->hold();
  const TimingOptions timing{.oracle = options_.oracle,
                             .clock = options_.clock,
                             .host = host_.get(),
                             .sets = &sets_,
                             .baselines = &baselines_,
                             .empty_batches = &empty_batches_,
                             .machine = options_.machine,
                             .precision = options_.precision,
                             .determinism = options_.determinism,
                             .closeness = checked.closeness,
                             .judge = options,
                             .call_max = call_max(options),
                             .first_estimate = checked.last_call,
                             .kernel_fd = library_fd};
  const TimingResult timed = TRY(time_candidate(runner, timing, rng_, &pool_));
  checked.failure = timed.failure;
  if (timed.failure) return {};
  checked.nondeterministic = checked.nondeterministic || timed.nondeterministic;
  evaluation.measurement = timed.measurement;
  evaluation.stopped_early = timed.stopped_early;
  if (timed.tie) evaluation.flags.push_back("tie");
  if (timed.too_small) evaluation.flags.push_back("too_small");
  if (timed.drifted) evaluation.flags.push_back("drift");
  return {};
}

// Its misses are to be its own: nothing else of ours runs meanwhile.
Result<EventCounts> Judge::count_events(const std::string& source) {
  const Artifact artifact = TRY(builder_.build(source));
  if (artifact.failure) return Error{Errc::unavailable, "a source that does not build cannot run"};
  const os::FileDescriptor library = TRY(library_for_room(artifact.built_path));
  const std::lock_guard running(running_);
  TRY(start_host());
  const TimingLock::Turn turn = TRY(lock_->take_turn());
  const TimingLock::Held held = lock_->hold();
  return ke::count_events(*host_, sets_, problem(), library.get(),
                          call_max({.effort = Effort::full}));
}

Result<std::vector<std::string>> Judge::admission_flags() {
  if (!admission_) {
    admission_ = problem().flags;
    const AdmissionReport report =
        TRY(screen_problem(problem(), sets_, options_.precision, rng_, &pool_));
    if (report.trivial() &&
        std::find(admission_->begin(), admission_->end(), "trivial") == admission_->end()) {
      admission_->push_back("trivial");
    }
  }
  return *admission_;
}

}  // namespace

Result<std::unique_ptr<Evaluator>> make_evaluator(const EvaluatorOptions& options) {
  KE_ASSERT(options.oracle && options.target && options.clock && !options.runner_command.empty());
  auto lock = std::make_unique<TimingLock>(
      options.device_lock, [oracle = options.oracle](bool judging) { oracle->freeze(judging); });
  Builder builder = TRY(Builder::create({options.target, options.limits, options.libraries,
                                         options.artifacts, lock.get(), options.clock}));
  return std::unique_ptr<Evaluator>(
      std::make_unique<Judge>(options, std::move(lock), std::move(builder)));
}

}  // namespace ke
