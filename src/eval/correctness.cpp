// SPDX-License-Identifier: Apache-2.0
#include "eval/correctness.hpp"

#include <fmt/format.h>

#include <cstring>

#include "base/assert.hpp"

namespace ke {
namespace {

using runner::Outcome;
using runner::Runner;
using runner::RunnerFailure;

class Check {
 public:
  Check(Runner& runner, SetStore& sets, const Problem& problem, const CheckOptions& options,
        Rng& rng, ThreadPool* pool, CheckResult& result)
      : runner_(runner),
        sets_(sets),
        problem_(problem),
        options_(options),
        rng_(rng),
        pool_(pool),
        result_(result) {
    KE_ASSERT(!options_.sets.empty());
  }

  Result<void> run() {
    RunBudget budget(problem_, options_.precision);
    for (size_t i = 0; i < options_.sets.size() && !result_.failure; ++i) {
      const HeldSet* held = TRY(sets_.checked(options_.sets[i]));
      OutputSet* outputs = TRY(sets_.outputs(0));
      TRY(call(static_cast<int>(i % 2), *held, *outputs));
      if (!result_.failure) compare(*held, *outputs, budget);
      if (i == 0 && !result_.failure) TRY(first_set(*held, *outputs, budget));
    }
    if (!result_.failure) {
      if (const auto wrong = budget.verdict()) fail(Verdict::wrong_output, *wrong);
    }
    result_.errors = budget.errors();
    return {};
  }

  // Set by set, since some have to be made again each time; slots and addresses take turns.
  Result<void> run_again() {
    std::vector<RunBudget> budgets(kFurtherRuns, RunBudget(problem_, options_.precision));
    for (const int index : options_.sets) {
      const HeldSet* held = TRY(sets_.checked(index));
      for (int run = 0; run < kFurtherRuns && !result_.failure; ++run) {
        OutputSet* outputs = TRY(sets_.outputs(run % 2));
        TRY(call(run % 2, *held, *outputs));
        RunBudget& budget = budgets[static_cast<size_t>(run)];
        if (!result_.failure) compare(*held, *outputs, budget);
        if (result_.failure) blame(run);
      }
      if (result_.failure) return {};
    }
    for (int run = 0; run < kFurtherRuns && !result_.failure; ++run) {
      const RunBudget& budget = budgets[static_cast<size_t>(run)];
      if (const auto wrong = budget.verdict()) fail(Verdict::wrong_output, *wrong);
      if (result_.failure) blame(run);
      keep_worst(result_.errors, budget.errors());
    }
    return {};
  }

 private:
  void fail(Verdict verdict, std::string detail) {
    result_.failure = RunnerFailure{verdict, std::move(detail)};
    runner_.end();
  }

  // A further run was wrong: what the first run passed by luck.
  void blame(int run) {
    if (result_.failure->verdict != Verdict::wrong_output) return;
    result_.failure->verdict = Verdict::nondeterministic;
    result_.failure->detail =
        fmt::format("calls with the same inputs differ, and further run {} of {} is wrong: {}",
                    run + 1, kFurtherRuns, result_.failure->detail);
  }

  // One call into freshly poisoned outputs; the runner is stopped afterwards.
  Result<void> call(int slot, const HeldSet& held, OutputSet& outputs) {
    poison_ = draw_poison(rng_, poison_);
    for (OutputMemory& output : outputs) output.poison(poison_);
    TRY(runner_.resume());
    Outcome outcome = TRY(runner_.bind(slot, held.files(), files_of(outputs)));
    if (!failure_of(outcome)) {
      const int64_t slots[] = {slot};
      outcome = TRY(runner_.run(slots, options_.call_max));
    }
    if (const RunnerFailure* failure = failure_of(outcome)) {
      result_.failure = *failure;
      return {};
    }
    result_.last_call = std::get<Nanoseconds>(outcome);
    TRY(runner_.stop());
    if (const auto damaged = check_canaries(outputs)) fail(damaged->verdict, damaged->detail);
    return {};
  }

  void compare(const HeldSet& held, const OutputSet& outputs, RunBudget& budgets) {
    const SetKind kind = held.set.request.kind;
    const std::string_view name = enum_name(kind);
    Budget& budget = budgets.of(kind);
    for (size_t i = 0; i < outputs.size(); ++i) {
      const OutputTruth& truth = held.set.truths[i];
      const Comparison found =
          compare_output(problem_.outputs[i], outputs[i].data(), truth, pool_);
      budget.add(i, found, truth, name);
      if (!budget.outside_tolerance()) continue;
      std::string detail = *budget.outside_tolerance();
      if (options_.tell_values && found.worst_index >= 0) {
        detail += fmt::format(" ({})", values_at(problem_.outputs[i], outputs[i].data(), truth,
                                                 found.worst_index));
      }
      const int64_t untouched = count_poisoned(problem_.outputs[i], outputs[i].data(), poison_);
      if (untouched > 0) detail += fmt::format("; {} elements were never written", untouched);
      return fail(Verdict::wrong_output, std::move(detail));
    }
  }

  Result<void> first_set(const HeldSet& held, const OutputSet& outputs, const RunBudget& budget) {
    const std::vector<OutputError> errors = budget.errors();
    for (size_t i = 0; i < errors.size(); ++i) {
      result_.closeness.push_back(
          closeness_of(held.set.truths[i], errors[i], options_.precision));
    }
    return repeat(held, outputs);
  }

  // The same contents at other addresses, over another poison: the bits must agree, unless the
  // policy has further runs decide.
  Result<void> repeat(const HeldSet& held, const OutputSet& first) {
    OutputSet* second = TRY(sets_.outputs(1));
    TRY(call(1, held, *second));
    for (size_t i = 0; i < first.size() && !result_.failure; ++i) {
      const auto a = first[i].data(), b = std::as_const((*second)[i]).data();
      if (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0) continue;
      if (options_.determinism == Determinism::budget &&
          ir::is_floating(problem_.outputs[i].dtype)) {
        result_.nondeterministic = true;
        continue;
      }
      fail(Verdict::nondeterministic,
           fmt::format("output {} differs between two calls with the same inputs", i));
    }
    return {};
  }

  Runner& runner_;
  SetStore& sets_;
  const Problem& problem_;
  const CheckOptions& options_;
  Rng& rng_;
  ThreadPool* pool_;
  std::byte poison_{0};
  CheckResult& result_;
};

}  // namespace

std::byte draw_poison(Rng& rng, std::byte other_than) {
  while (true) {
    const auto poison = static_cast<std::byte>(0x41 + rng.below(0x3a));
    if (poison != other_than) return poison;
  }
}

std::optional<RunnerFailure> check_canaries(const OutputSet& outputs) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].canaries_intact()) continue;
    return RunnerFailure{Verdict::out_of_bounds,
                         fmt::format("it wrote beside output {}, within 64 bytes of its end or in "
                                     "the page before it",
                                     i)};
  }
  return std::nullopt;
}

Result<CheckResult> check_correctness(Runner& runner, SetStore& sets, const Problem& problem,
                                      const CheckOptions& options, Rng& rng, ThreadPool* pool) {
  CheckResult checked;
  TRY(Check(runner, sets, problem, options, rng, pool, checked).run());
  return checked;
}

Result<void> check_further_runs(Runner& runner, SetStore& sets, const Problem& problem,
                                const CheckOptions& options, Rng& rng, ThreadPool* pool,
                                CheckResult& checked) {
  KE_ASSERT(options.determinism == Determinism::budget && !checked.failure);
  checked.nondeterministic = true;
  return Check(runner, sets, problem, options, rng, pool, checked).run_again();
}

}  // namespace ke
