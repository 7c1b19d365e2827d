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

// Repeated in every width, these are large finite floats, large integers and no boolean.
std::byte draw_poison(Rng& rng, std::byte other_than) {
  while (true) {
    const auto poison = static_cast<std::byte>(0x41 + rng.below(0x3a));
    if (poison != other_than) return poison;
  }
}

class Check {
 public:
  Check(Runner& runner, SetStore& sets, const Problem& problem, const CheckOptions& options,
        Rng& rng, ThreadPool* pool)
      : runner_(runner),
        sets_(sets),
        problem_(problem),
        options_(options),
        rng_(rng),
        pool_(pool),
        budget_(problem, options.precision),
        special_budget_(problem, options.precision) {}

  Result<CheckResult> run() {
    KE_ASSERT(!options_.sets.empty());
    for (size_t i = 0; i < options_.sets.size() && !result_.failure; ++i) {
      const HeldSet* held = TRY(sets_.checked(options_.sets[i]));
      OutputSet* outputs = TRY(sets_.outputs(0));
      TRY(call(static_cast<int>(i % 2), *held, *outputs));
      if (!result_.failure) compare(*held, *outputs);
      if (i == 0 && !result_.failure) TRY(repeat(*held, *outputs));
    }
    if (!result_.failure) {
      for (const Budget* budget : {&budget_, &special_budget_}) {
        const auto wrong = result_.failure ? std::nullopt : budget->verdict();
        if (wrong) fail(Verdict::wrong_output, *wrong);
      }
    }
    result_.errors = budget_.errors();
    return std::move(result_);
  }

 private:
  void fail(Verdict verdict, std::string detail) {
    result_.failure = RunnerFailure{verdict, std::move(detail)};
    runner_.end();
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

  void compare(const HeldSet& held, const OutputSet& outputs) {
    const SetKind kind = held.set.request.kind;
    const std::string_view name = enum_name(kind);
    Budget& budget = kind == SetKind::special ? special_budget_ : budget_;
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

  // The same contents at other addresses, over another poison: the bits must agree.
  Result<void> repeat(const HeldSet& held, const OutputSet& first) {
    OutputSet* second = TRY(sets_.outputs(1));
    TRY(call(1, held, *second));
    for (size_t i = 0; i < first.size() && !result_.failure; ++i) {
      const auto a = first[i].data(), b = std::as_const((*second)[i]).data();
      if (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0) continue;
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
  Budget budget_;
  Budget special_budget_;  // PyTorch's errors there say nothing about ordinary values
  std::byte poison_{0};
  CheckResult result_;
};

}  // namespace

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
  return Check(runner, sets, problem, options, rng, pool).run();
}

}  // namespace ke
