// SPDX-License-Identifier: Apache-2.0
#include "eval/device/evaluator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <optional>

#include "base/assert.hpp"
#include "base/json.hpp"
#include "base/rng.hpp"
#include "eval/baselines.hpp"
#include "eval/build.hpp"
#include "eval/device/check.hpp"
#include "eval/device/timing.hpp"
#include "eval/floor.hpp"
#include "eval/patience.hpp"
#include "eval/timing_lock.hpp"
#include "oracle/model_process.hpp"
#include "os/file_system.hpp"
#include "target/device_package.hpp"

namespace ke::device {
namespace {

constexpr int64_t kPackageBytesMax = int64_t{256} << 20;
constexpr int64_t kMillisecondNs = 1'000'000;
constexpr Nanoseconds kShareMax = std::chrono::milliseconds(300);  // while somebody waits

// What runs, or why it cannot.
struct Runnable {
  Candidate candidate;
  std::string kernel_class = "own";
  std::optional<Evaluation> failure;
};

target::LaunchShapes launch_shapes(const Problem& problem) {
  target::LaunchShapes shapes;
  for (const TensorSpec& spec : problem.inputs) shapes.inputs.push_back(spec.shape);
  for (const TensorSpec& spec : problem.outputs) shapes.outputs.push_back(spec.shape);
  return shapes;
}

Evaluation rejection(Verdict verdict, std::string detail) {
  Evaluation evaluation;
  evaluation.verdict = verdict;
  evaluation.detail = std::move(detail);
  return evaluation;
}

Result<Runnable> read_package(const std::string& path, const Problem& problem) {
  Result<target::DevicePackage> package =
      target::decode_package(TRY(os::read_file(path, kPackageBytesMax)));
  Runnable found;
  if (!package) {
    found.failure = rejection(Verdict::compile_error, package.error().to_string());
    return found;
  }
  const Result<target::LaunchScript> script = target::parse_launch_lines(package->launch_lines);
  Result<target::LaunchPlan> plan = script
                                        ? target::plan_launches(*script, launch_shapes(problem))
                                        : Result<target::LaunchPlan>(script.error());
  if (!plan) {
    found.failure = rejection(Verdict::compile_error, plan.error().to_string());
    return found;
  }
  found.candidate = PackageCandidate{std::move(package->code), std::move(*plan)};
  return found;
}

// What py/kernelevolve/model_runner.py must know of the problem.
std::string describe_for_module(const Problem& problem) {
  Json inputs = Json::array(), outputs = Json::array();
  for (const TensorSpec& spec : problem.inputs) {
    inputs.push_back(encode(spec));
    if (std::ranges::find(problem.mutated, spec.name) != problem.mutated.end()) {
      inputs.back()["mutated"] = true;  // the module may write to a copy of its own
    }
  }
  for (const TensorSpec& spec : problem.outputs) {
    outputs.push_back(Json{{"dtype", enum_name(spec.dtype)}, {"shape", spec.shape}});
  }
  return dump_json(Json{{"init_inputs_problem", problem.path},
                        {"case", problem.shape_case},
                        {"inputs", std::move(inputs)},
                        {"outputs", std::move(outputs)}});
}

// Nobody can tell from outside what a module calls. One that defines no kernel has only the
// library's, and so has one that was taken over from torch.compile and says it; of others we know
// no better than that they may use both.
Result<Runnable> read_module(const std::string& path, const Problem& problem) {
  Runnable found;
  std::string source = TRY(os::read_file(path, kPackageBytesMax));
  const bool taken_over = source.starts_with("# ke:origin ");  // library_forms.py says so
  const bool kernels = source.find("@triton.jit") != std::string::npos;
  found.kernel_class = kernels && !taken_over ? "mixed" : "library";
  found.candidate = ModuleCandidate{std::move(source), describe_for_module(problem)};
  return found;
}

bool makes_modules(const Target& target) {
  const Result<BuildRecipe> recipe = target.recipe("");
  return recipe && recipe->artifact == ArtifactKind::python_module;
}

DeviceRunnerOptions runner_options(const DeviceEvaluatorOptions& options, DeviceSets& sets) {
  DeviceRunnerOptions runner;
  runner.launcher = {.command = options.launcher_command,
                     .ordinal = options.ordinal,
                     .clock = options.judge.clock,
                     .driver = options.driver,
                     .module_memory_bytes = options.judge.limits.runner_memory_bytes};
  runner.sets = &sets;
  if (options.python.empty()) return runner;
  runner.start_module = [options]() -> Result<launcher::Process> {
    oracle::ModelProcess model =
        TRY(oracle::start_model_process({.python = options.python,
                                         .problem_path = options.judge.oracle->problem().path,
                                         .cache_dir = options.cache_dir,
                                         .driver = options.driver,
                                         .threads = options.judge.threads,
                                         .limits = options.judge.limits,
                                         .zygote = options.zygote}));
    return launcher::Process{std::move(model.process), std::move(model.socket)};
  };
  return runner;
}

class DeviceJudge final : public Evaluator {
 public:
  DeviceJudge(const DeviceEvaluatorOptions& options, std::unique_ptr<TimingLock> builds,
              Builder builder)
      : options_(options.judge),
        builds_(std::move(builds)),
        lock_(options_.device_lock),
        builder_(std::move(builder)),
        sets_(*options_.oracle, options_.machine, options.memory_bytes, options_.limits,
              options_.seed),
        batch_clock_(makes_modules(*options_.target) ? BatchClock::judge : BatchClock::device),
        baseline_oracle_(*options_.oracle, batch_clock_),
        baselines_(baseline_oracle_),
        rng_(Rng(options_.seed).split("device judge")),
        runner_(runner_options(options, sets_)) {
    sets_.set_pause([this] { return make_room(); });
  }

  Result<Artifact> build(const std::string& source) override { return builder_.build(source); }
  Result<Evaluation> judge(const Artifact& artifact, const JudgeOptions& options) override;
  Result<std::vector<std::string>> admission_flags() override { return problem().flags; }
  int64_t floor_ns() const override {
    return physical_floor_ns(problem(), options_.machine, sets_.cold());
  }

 private:
  const Problem& problem() const { return options_.oracle->problem(); }
  DeviceBench& bench() const { return *options_.oracle->device_bench(); }

  template <typename Work>
  auto alone(const Work& work) -> decltype(work());
  Result<void> work_beside_others();
  Result<void> make_room();
  Result<std::optional<DeviceFailure>> load(Candidate candidate, const JudgeOptions& options);
  Result<Evaluation> judge_beside_others(const Artifact& artifact, const JudgeOptions& options);
  Result<void> refresh_baselines(const JudgeOptions& options);
  Nanoseconds call_max(const JudgeOptions& options) const;
  std::vector<int> sets_to_check(Effort effort) const;
  Result<void> judge_loaded(const JudgeOptions& options, Evaluation& evaluation);
  Result<std::optional<DeviceFailure>> time(const JudgeOptions& options, Evaluation& evaluation);

  EvaluatorOptions options_;
  std::unique_ptr<TimingLock> builds_;  // never held: compilers do not disturb a device
  TimingLock lock_;
  Builder builder_;
  std::mutex running_;  // held while a launcher runs: guards what follows
  TimingLock::Share share_;  // of the device, while judging but not measuring
  Nanoseconds shared_since_{0};
  DeviceSets sets_;
  bool sets_unseen_ = true;  // by every candidate that was not being confirmed
  BatchClock batch_clock_;
  DeviceBaselineOracle baseline_oracle_;
  Baselines baselines_;
  Rng rng_;
  DeviceRunner runner_;
};

// Screens trust what is known; full and confirm measure again.
Result<void> DeviceJudge::refresh_baselines(const JudgeOptions& options) {
  if (!TRY(baselines_.stale()) && options.effort == Effort::screen) return {};
  const std::vector<int64_t> ids = TRY(fill_timing_slots(sets_));
  return alone([&] { return baselines_.measure_all(ids); });
}

// With the device for itself, in the middle of work that goes on beside others'.
template <typename Work>
auto DeviceJudge::alone(const Work& work) -> decltype(work()) {
  share_.reset();
  auto done = [&]() -> decltype(work()) {
    const TimingLock::Turn turn = TRY(lock_.take_turn());
    TRY(bench().hold_background(true));
    auto result = work();
    TRY(bench().hold_background(false));
    return result;
  }();
  TRY(work_beside_others());
  return done;
}

Result<void> DeviceJudge::work_beside_others() {
  share_ = TRY(lock_.share());
  shared_since_ = options_.clock->now();
  return {};
}

// Those who wait to measure get their turn in the middle of a long check.
Result<void> DeviceJudge::make_room() {
  if (!share_ || options_.clock->now() - shared_since_ < kShareMax || !lock_.somebody_waits()) {
    return {};
  }
  share_.reset();
  return work_beside_others();
}

// A module imports and compiles for seconds, in which it hardly touches the device.
Result<std::optional<DeviceFailure>> DeviceJudge::load(Candidate candidate,
                                                       const JudgeOptions& options) {
  const bool module = std::holds_alternative<ModuleCandidate>(candidate);
  if (module) {
    TRY(sets_.fill(0, sets_.checked(0)));
    share_.reset();
  }
  launcher::Outcome outcome = TRY(runner_.load(std::move(candidate)));
  if (module && !failure_of(outcome)) {
    outcome = TRY(runner_.run({0}, {}, options_.limits.first_call_max));
  }
  if (module) TRY(work_beside_others());
  const launcher::LaunchFailure* failure = failure_of(outcome);
  if (failure == nullptr) return std::optional<DeviceFailure>();
  if (!module) return std::optional(DeviceFailure{failure->verdict, failure->detail});
  return std::optional(TRY(explain(runner_, sets_, *failure, 0, call_max(options))));
}

// Further shapes or contents may make a module compile once more.
Nanoseconds DeviceJudge::call_max(const JudgeOptions& options) const {
  return longest_call(options_.limits, options, baselines_.time_ns(BaselineKind::eager),
                      std::chrono::seconds(5));
}

// Screens leave out what would cost more than it tells, as on the processor (evaluator.cpp).
std::vector<int> DeviceJudge::sets_to_check(Effort effort) const {
  std::vector<int> indices;
  const bool heavy = baselines_.time_ns(BaselineKind::eager).value_or(0) > kHeavyNs;
  for (int i = 0; i < kCheckedSetCount; ++i) {
    const bool probe_of_heavy = i == 0 || kCheckedSets[i] == SetKind::mantissa_tail;
    const bool cheap = sets_.resident(i) && (!heavy || probe_of_heavy);
    if (effort != Effort::screen || cheap) indices.push_back(i);
  }
  return indices;
}

Result<Evaluation> DeviceJudge::judge(const Artifact& artifact, const JudgeOptions& options) {
  if (artifact.failure) return *artifact.failure;
  const std::lock_guard running(running_);
  const Nanoseconds start = options_.clock->now();
  if (options.measure && options.effort != Effort::screen) {
    TRY(baselines_.await_compile(*options_.clock, options_.limits.compiled_baseline_max));
  }
  TRY(work_beside_others());
  Result<Evaluation> evaluation = judge_beside_others(artifact, options);
  share_.reset();
  if (evaluation) evaluation->judge_ms = (options_.clock->now() - start).count() / kMillisecondNs;
  return evaluation;
}

// Others may use the device at the same time, except while something is measured.
Result<Evaluation> DeviceJudge::judge_beside_others(const Artifact& artifact,
                                                    const JudgeOptions& options) {
  // What the search was judged with is not what confirms; those confirmed in a row share new sets.
  if (options.effort == Effort::confirm && !sets_unseen_) sets_.renew();
  sets_unseen_ = options.effort == Effort::confirm;
  if (options.measure) TRY(refresh_baselines(options));

  Runnable runnable =
      TRY(batch_clock_ == BatchClock::judge ? read_module(artifact.built_path, problem())
                                   : read_package(artifact.built_path, problem()));
  if (runnable.failure) {
    runnable.failure->build_ms = artifact.build_ms;
    return *runnable.failure;
  }
  Evaluation evaluation;
  evaluation.kernel_class = runnable.kernel_class;
  evaluation.build_ms = artifact.build_ms;
  if (options.effort == Effort::confirm) runner_.forget();  // a process of its own
  if (const auto failure = TRY(load(std::move(runnable.candidate), options))) {
    evaluation.verdict = failure->verdict;
    evaluation.detail = failure->detail;
  } else {
    TRY(judge_loaded(options, evaluation));
  }
  evaluation.protections = runner_.protections();
  return evaluation;
}

Result<void> DeviceJudge::judge_loaded(const JudgeOptions& options, Evaluation& evaluation) {
  const DeviceCheckOptions check{options_.precision, options_.determinism,
                                 sets_to_check(options.effort), call_max(options)};
  const DeviceCheckResult checked = TRY(check_on_device(runner_, sets_, problem(), check, rng_));
  std::optional<DeviceFailure> failure = checked.failure;
  evaluation.errors = checked.errors;
  if (!failure && options.measure) failure = TRY(time(options, evaluation));
  if (failure) {
    evaluation.measurement.reset();
    evaluation.flags.clear();
    evaluation.verdict = failure->verdict;
    evaluation.detail = failure->detail;
    return {};
  }
  evaluation.verdict = Verdict::accepted;
  evaluation.confirmed = options.effort == Effort::confirm;
  if (checked.nondeterministic) evaluation.flags.emplace_back(kNondeterministicFlag);
  for (const std::string& flag : TRY(admission_flags())) evaluation.flags.push_back(flag);
  return {};
}

Result<std::optional<DeviceFailure>> DeviceJudge::time(const JudgeOptions& options,
                                                       Evaluation& evaluation) {
  TRY(fill_timing_slots(sets_));  // their truths take a while
  const DeviceTimingOptions timing{.sets = &sets_,
                                   .baselines = &baselines_,
                                   .baseline_oracle = &baseline_oracle_,
                                   .bench = &bench(),
                                   .problem = &problem(),
                                   .batch_clock = batch_clock_,
                                   .clock = options_.clock,
                                   .device = options_.machine,
                                   .precision = options_.precision,
                                   .judge = options,
                                   .call_max = call_max(options)};
  const DeviceTimingResult timed =
      TRY(alone([&] { return time_on_device(runner_, timing, rng_); }));
  if (timed.failure) return timed.failure;
  evaluation.measurement = timed.measurement;
  evaluation.stopped_early = timed.stopped_early;
  if (timed.tie) evaluation.flags.emplace_back("tie");
  if (timed.too_small) evaluation.flags.emplace_back("too_small");
  if (timed.drifted) evaluation.flags.emplace_back("drift");
  return std::optional<DeviceFailure>();
}

}  // namespace

Result<std::unique_ptr<Evaluator>> make_judge(const DeviceEvaluatorOptions& options,
                                              std::unique_ptr<TimingLock> builds,
                                              Builder builder) {
  return std::unique_ptr<Evaluator>(
      std::make_unique<DeviceJudge>(options, std::move(builds), std::move(builder)));
}

}  // namespace ke::device

namespace ke {

Result<std::unique_ptr<Evaluator>> make_device_evaluator(const DeviceEvaluatorOptions& options) {
  const EvaluatorOptions& judge = options.judge;
  KE_ASSERT(judge.oracle && judge.oracle->device_slots() && judge.target && judge.clock &&
            !options.launcher_command.empty());
  auto builds = std::make_unique<TimingLock>(std::filesystem::path());
  Builder builder = TRY(Builder::create({judge.target, judge.limits, judge.libraries,
                                         judge.artifacts, builds.get(), judge.clock}));
  return device::make_judge(options, std::move(builds), std::move(builder));
}

}  // namespace ke
