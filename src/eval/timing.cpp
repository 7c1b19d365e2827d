// SPDX-License-Identifier: Apache-2.0
//
// See timing.hpp. Statistics are argued in statistics.hpp.
#include "eval/timing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/assert.hpp"
#include "eval/baseline_samples.hpp"
#include "eval/floor.hpp"
#include "eval/statistics.hpp"

namespace ke {
namespace {

using runner::Outcome;
using runner::Runner;
using runner::RunnerFailure;

constexpr int64_t kMs = 1'000'000;
constexpr size_t kComparedCalls = 6;              // the last ones of a watched batch
constexpr double kDrift = 0.2;                    // of the baseline while it is sampled
constexpr std::chrono::seconds kSecondChance{3};  // what sampling twice may cost
constexpr int kWarmPairs = 5;
constexpr int64_t kBaselineNsMin = 100;  // no call of PyTorch takes less, whatever it computes
constexpr int kMeasurements = 3;         // until an impossible time is believed
constexpr double kContradiction = 0.5;   // of 2N calls against twice N, relative

// Two elements of one input that changed places.
struct Swap {
  size_t set, input;
  int64_t a, b;
};

class Session {
 public:
  Session(Runner& runner, const TimingOptions& options, Rng& rng, ThreadPool* pool)
      : runner_(runner),
        options_(options),
        problem_(options.oracle->problem()),
        rng_(rng),
        pool_(pool) {}

  Result<TimingResult> run() {
    TRY(prepare());
    TRY(measure());
    if (!result_.failure) TRY(question_times_below_the_floor());
    if (!result_.failure) TRY(sample_warm());
    if (!result_.failure) TRY(check_afterwards());
    TRY(put_back());
    return std::move(result_);
  }

 private:
  bool keep(const Outcome& outcome) {
    if (const RunnerFailure* failure = failure_of(outcome)) result_.failure = *failure;
    return !result_.failure;
  }
  void fail(Verdict verdict, std::string detail) {
    result_.failure = RunnerFailure{verdict, std::move(detail)};
    runner_.end();
  }

  int64_t slot_of(size_t set) const { return kFirstTimingSlot + static_cast<int64_t>(set); }

  Nanoseconds batch_max(size_t calls) const {
    return options_.call_max + static_cast<int64_t>(calls) * 20 * Nanoseconds(estimate_ns_);
  }

  // Runs sets in order; 0 after a failure.
  Result<int64_t> run_batch(const std::vector<size_t>& order) {
    std::vector<int64_t> slots;
    for (size_t set : order) slots.push_back(slot_of(set));
    const Outcome outcome = TRY(runner_.run(slots, batch_max(order.size())));
    if (!keep(outcome)) return int64_t{0};
    return std::get<Nanoseconds>(outcome).count();
  }

  std::vector<int64_t> ids_of(const std::vector<size_t>& order) const {
    std::vector<int64_t> ids;
    for (size_t set : order) ids.push_back(sets_[set]->set.id);
    return ids;
  }

  Result<void> bind_all(Runner& runner) {
    for (size_t i = 0; i < sets_.size() && !result_.failure; ++i) {
      keep(TRY(
          runner.bind(static_cast<int>(slot_of(i)), sets_[i]->files(), files_of(*outputs_[i]))));
    }
    return {};
  }

  Result<void> prepare() {
    sets_ = TRY(options_.sets->timing());
    for (size_t i = 0; i < sets_.size(); ++i) {
      outputs_.push_back(TRY(options_.sets->outputs(static_cast<int>(i))));
      for (OutputMemory& output : *outputs_.back()) output.restore_canaries();
      rotation_.push_back(i);
    }
    rng_.shuffle(rotation_);
    options_.oracle->pause();
    TRY(runner_.resume());
    TRY(bind_all(runner_));
    if (result_.failure) return {};
    estimate_ns_ = options_.first_estimate.count();
    if (estimate_ns_ < kHeavyNs / 10) {  // all sets once: maps pages, and a better estimate
      const int64_t taken = TRY(run_batch(rotation_));
      estimate_ns_ = std::max<int64_t>(1, taken / static_cast<int64_t>(sets_.size()));
    }
    TRY(runner_.stop());
    plan_ = plan_timing(options_.judge.effort, estimate_ns_, options_.baselines->fastest_ns(),
                        static_cast<int>(sets_.size()), options_.sets->cold());
    if (!result_.failure) empty_ = TRY(empty_batch(plan_.calls));
    return {};
  }

  // An empty kernel in a runner of its own, called through the same slots.
  Result<EmptyBatch> empty_batch(int32_t calls) {
    const auto found = options_.empty_batches->find(calls);
    if (found != options_.empty_batches->end()) return found->second;
    Runner empty = TRY(options_.host->spawn());
    TRY(bind_all(empty));
    Outcome outcome = TRY(empty.load(-1, problem_, options_.call_max));
    std::vector<int64_t> slots;
    for (int32_t i = 0; i < calls; ++i) {
      slots.push_back(slot_of(rotation_[static_cast<size_t>(i) % rotation_.size()]));
    }
    std::vector<int64_t> samples;
    for (int i = 0; i < 12 && !failure_of(outcome); ++i) {
      outcome = TRY(empty.run(slots, options_.call_max));
      if (!failure_of(outcome)) samples.push_back(std::get<Nanoseconds>(outcome).count());
    }
    if (const RunnerFailure* failure = failure_of(outcome)) {
      return Error{Errc::internal, "the empty kernel failed: " + failure->detail};
    }
    std::sort(samples.begin(), samples.end());
    const EmptyBatch batch{median_ns(samples), samples[9] - samples[3]};
    options_.empty_batches->emplace(calls, batch);
    return batch;
  }

  std::vector<size_t> next_order(int32_t calls) {
    std::vector<size_t> order;
    for (int32_t i = 0; i < calls; ++i) order.push_back(rotation_[next_++ % rotation_.size()]);
    return order;
  }

  // One change in every input of every set: contents that were never seen before.
  void change_inputs() {
    for (size_t set = 0; set < sets_.size(); ++set) {
      if (!sets_[set]->writable) continue;
      for (size_t input = 0; input < sets_[set]->set.inputs.size(); ++input) {
        const int64_t count = problem_.inputs[input].elements();
        if (count < 2) continue;
        swaps_.push_back({set, input, rng_.below(count), rng_.below(count)});
        apply(swaps_.back());
      }
    }
  }

  void apply(const Swap& swap) {
    const TensorMemory& tensor = sets_[swap.set]->set.inputs[swap.input];
    const size_t width = static_cast<size_t>(ir::bytes_of(problem_.inputs[swap.input].dtype));
    std::byte* data = tensor.memory.data() + tensor.offset;
    std::swap_ranges(data + static_cast<size_t>(swap.a) * width,
                     data + static_cast<size_t>(swap.a) * width + width,
                     data + static_cast<size_t>(swap.b) * width);
  }

  void undo_changes() {
    for (size_t i = swaps_.size(); i-- > 0;) apply(swaps_[i]);
    swaps_.clear();
  }

  int64_t per_call(int64_t batch_ns, int64_t overhead_ns, size_t calls) const {
    return std::max<int64_t>(1, (batch_ns - overhead_ns) / static_cast<int64_t>(calls));
  }

  Result<int64_t> candidate_batch(const std::vector<size_t>& order) {
    options_.oracle->pause();
    TRY(runner_.resume());
    if (plan_.warm_calls) TRY(run_batch({order.back()}));
    const int64_t taken = result_.failure ? 0 : TRY(run_batch(order));
    TRY(runner_.stop());
    last_order_ = order;
    return taken;
  }

  Result<int64_t> baseline_batch(BaselineKind kind, const std::vector<size_t>& order) {
    options_.oracle->resume();
    const std::vector<int64_t> ids = ids_of(order);
    if (plan_.warm_calls) TRY(options_.oracle->ring(kind, {ids.back()}));
    return TRY(options_.oracle->ring(kind, ids)).count();
  }

  // Before which pairs a call is watched, drawn with repetition.
  std::vector<int> pairs_to_watch() {
    const Effort effort = options_.judge.effort;
    const bool heavy = estimate_ns_ > kHeavyNs;
    const int count = effort == Effort::screen ? (heavy ? 0 : 1) : heavy ? 1 : 3;
    std::vector<int> pairs;
    for (int i = 0; i < count; ++i) pairs.push_back(static_cast<int>(rng_.below(plan_.pairs)));
    return pairs;
  }

  // A batch that ends early, at a random call, whose outputs are compared. While a call runs nobody
  // can know whether it is that one, so no call can be skipped because a later one overwrites it.
  Result<void> watch_a_call() {
    const auto calls = static_cast<int32_t>(1 + rng_.below(plan_.calls));
    const std::vector<size_t> order = next_order(calls);
    TRY(candidate_batch(order));
    if (!result_.failure) TRY(compare_with_fresh_runner(order));
    return {};
  }

  // A torch.compile that is known to be clearly slower makes as many of the calls as take it about
  // as long as eager takes for all.
  std::vector<size_t> share_of(BaselineKind kind, const std::vector<size_t>& order) const {
    const auto eager = options_.baselines->time_ns(BaselineKind::eager);
    const auto own = options_.baselines->time_ns(kind);
    if (!eager || !own) return order;
    const double ratio = static_cast<double>(*own) / static_cast<double>(*eager);
    if (kind == BaselineKind::eager || ratio <= kClearlySlower) return order;
    const auto calls = static_cast<std::ptrdiff_t>(static_cast<double>(order.size()) / ratio);
    return {order.begin(), order.begin() + std::max<std::ptrdiff_t>(1, calls)};
  }

  // One batch of each kind. A torch.compile that fails from one call to the next is left out, and
  // what was measured of it before.
  Result<void> sample_baselines(std::vector<BaselineKind>& kinds,
                                const std::vector<size_t>& order) {
    Measurement& m = result_.measurement;
    for (const BaselineKind kind : std::vector(kinds)) {
      const std::vector<size_t> share = share_of(kind, order);
      const Result<int64_t> theirs = baseline_batch(kind, share);
      auto& samples = kind == BaselineKind::eager ? m.eager_ns : m.compile_ns;
      if (theirs) {
        samples.push_back(per_call(*theirs, options_.baselines->doorbell_ns(), share.size()));
        continue;
      }
      if (kind == BaselineKind::eager) return theirs.error();
      options_.baselines->lose_compile();
      samples.clear();
      kinds = {BaselineKind::eager};
    }
    return {};
  }

  Result<void> sample() {
    Measurement& m = result_.measurement;
    const bool screening = options_.judge.effort == Effort::screen;
    result_.stopped_early = false;
    std::vector<BaselineKind> kinds =
        screening ? std::vector{options_.baselines->better()} : options_.baselines->available();
    const std::vector<int> watched = pairs_to_watch();
    for (int pair = 0; pair < plan_.pairs; ++pair) {
      change_inputs();
      for (int64_t n = std::count(watched.begin(), watched.end(), pair); n > 0; --n) {
        TRY(watch_a_call());
        if (result_.failure) return {};
      }
      const std::vector<size_t> order = next_order(plan_.calls);
      const int64_t taken = TRY(candidate_batch(order));
      if (result_.failure) return {};
      m.candidate_ns.push_back(per_call(taken, empty_.median_ns, order.size()));
      TRY(sample_baselines(kinds, order));
      if (compile_is_clearly_slower(m)) kinds = {BaselineKind::eager};
      if (screening && pair == 1 && options_.judge.best_ns &&
          static_cast<double>(median_ns(m.candidate_ns)) >
              kClearlySlower * static_cast<double>(*options_.judge.best_ns)) {
        result_.stopped_early = plan_.pairs > 2;
        return {};
      }
    }
    return {};
  }

  bool drifts() const { return std::abs(result_.measurement.drift - 1) > kDrift; }

  // Pairs take care of a machine that slows down evenly, not of one that does so in steps. What
  // ought to be confirmed gets a second chance; what still drifts is flagged.
  Result<void> sample_again_after_drift(bool cheap) {
    Measurement& m = result_.measurement;
    m.drift = drift_of(better_samples(m));
    if (options_.judge.effort != Effort::confirm || !drifts() || !cheap) return {};
    m = Measurement{};
    TRY(sample());
    if (!result_.failure) m.drift = drift_of(better_samples(m));
    return {};
  }

  // The same set again and again, beside the better baseline: an inner loop of a small model.
  Result<void> sample_warm() {
    const bool spare = options_.judge.effort == Effort::screen || estimate_ns_ > kHeavyNs;
    if (spare || !options_.sets->cold()) return {};
    const std::vector<size_t> order(static_cast<size_t>(plan_.calls), rng_.below(sets_.size()));
    std::vector<int64_t> ours, theirs;
    for (int i = 0; i < kWarmPairs && !result_.failure; ++i) {
      change_inputs();
      const int64_t taken = TRY(candidate_batch(order));
      if (result_.failure) return {};
      ours.push_back(per_call(taken, empty_.median_ns, order.size()));
      const Result<int64_t> baseline = baseline_batch(options_.baselines->better(), order);
      if (!baseline) return {};  // a torch.compile that fails now and then: no warm figures
      theirs.push_back(per_call(*baseline, options_.baselines->doorbell_ns(), order.size()));
    }
    result_.measurement.warm_ns = median_ns(ours);
    result_.measurement.warm_baseline_ns = median_ns(theirs);
    return {};
  }

  Interval from_known_baseline(Interval paired) {
    Measurement& m = result_.measurement;
    m.eager_median_ns = options_.baselines->time_ns(BaselineKind::eager);
    m.compile_median_ns = options_.baselines->time_ns(BaselineKind::compile);
    const double ratio = static_cast<double>(options_.baselines->better_ns()) /
                         static_cast<double>(std::max<int64_t>(1, m.time_ns));
    return {ratio, std::min(ratio, paired.low), std::max(ratio, paired.high)};
  }

  void conclude() {
    Measurement& m = result_.measurement;
    m.calls_per_batch = plan_.calls;
    m.cold = options_.sets->cold();
    m.empty_call_ns = empty_.median_ns / plan_.calls;
    m.time_ns = median_ns(m.candidate_ns);
    take_baseline_medians(m, options_.baselines->time_ns(BaselineKind::eager),
                          options_.baselines->time_ns(BaselineKind::compile));
    Interval speedup = paired_speedup(better_samples(m), m.candidate_ns);
    // Two pairs say that the candidate is slow, not how slow: one slow call of the baseline among
    // them would rank it first. The baseline's time is known better from before.
    if (result_.stopped_early) speedup = from_known_baseline(speedup);
    m.speedup = speedup.middle;
    m.speedup_low = speedup.low;
    m.speedup_high = speedup.high;
    result_.tie = is_tie(speedup);
    result_.drifted = drifts();
    const int64_t noise = 3 * empty_.spread_ns / plan_.calls;
    result_.too_small = m.time_ns < std::max(kLaunchNs, noise);
  }

  // An impossible time rejects, but not at once: the empty batch that is subtracted may have been
  // timed while the machine was busy with something else, and a kernel cannot help that. A baseline
  // that seems to take no time was measured against such a moment as well.
  Result<void> measure() {
    for (int attempt = 0; attempt < kMeasurements && !result_.failure; ++attempt) {
      if (attempt > 0) {
        options_.empty_batches->erase(plan_.calls);
        empty_ = TRY(empty_batch(plan_.calls));
        if (baseline_is_impossible()) TRY(options_.baselines->measure_all(set_ids()));
        result_.measurement = Measurement{};
      }
      const Nanoseconds start = options_.clock->now();
      TRY(sample());
      const bool cheap = options_.clock->now() - start < kSecondChance;
      if (!result_.failure) TRY(sample_again_after_drift(cheap));
      if (!result_.failure) conclude();
      if (result_.failure) return {};
      if (is_possible(result_.measurement.time_ns) && !baseline_is_impossible()) return {};
    }
    if (is_possible(result_.measurement.time_ns)) {
      result_.drifted = true;
      return {};
    }
    fail(Verdict::implausible_time,
         fmt::format("{} ns a call is less than the {} ns in which this machine can move the "
                     "bytes at best",
                     result_.measurement.time_ns, impossible_ns()));
    return {};
  }

  bool is_possible(int64_t time_ns) const { return time_ns >= impossible_ns(); }

  bool baseline_is_impossible() const {
    const Measurement& m = result_.measurement;
    const int64_t least = std::max<int64_t>(kBaselineNsMin, impossible_ns());
    return m.eager_median_ns.value_or(least) < least || m.compile_median_ns.value_or(least) < least;
  }

  std::vector<int64_t> set_ids() const {
    std::vector<int64_t> ids;
    for (const auto& held : sets_) ids.push_back(held->set.id);
    return ids;
  }

  int64_t impossible_ns() const {
    return impossible_below_ns(problem_, options_.machine, options_.sets->cold());
  }

  // 2N calls must take about twice as long as N.
  Result<void> question_times_below_the_floor() {
    const int64_t time = result_.measurement.time_ns;
    const bool cold = result_.measurement.cold;
    if (time >= physical_floor_ns(problem_, options_.machine, cold)) return {};
    // Other work on the machine can bend one comparison, and lengthen the samples that the time is
    // the median of; a contradiction shows every time, and against the fastest sample too.
    const auto fastest = static_cast<double>(std::ranges::min(result_.measurement.candidate_ns));
    const double noise = 3 * static_cast<double>(empty_.spread_ns) / plan_.calls;
    const double least = (1 - kContradiction) * fastest - noise;
    const double most = (1 + kContradiction) * static_cast<double>(time) + noise;
    double marginal = 0;
    for (int round = 0; round < 3; ++round) {
      marginal = TRY(marginal_call_ns());
      if (result_.failure) return {};
      if (least <= marginal && marginal <= most) return {};
    }
    fail(Verdict::implausible_time,
         fmt::format("{} ns a call is below the hardware's floor, and a further call costs {:.0f} "
                     "ns: the two contradict",
                     time, marginal));
    return {};
  }

  // What a call costs beyond those of a batch: 2N calls against N, the fastest of five each, since
  // other work can only lengthen a batch.
  Result<double> marginal_call_ns() {
    const int32_t calls = std::min(plan_.calls, runner::kCallsPerBatchMax / 2);
    std::vector<int64_t> once, twice;
    options_.oracle->pause();
    TRY(runner_.resume());
    for (int i = 0; i < 5 && !result_.failure; ++i) {
      once.push_back(TRY(run_batch(next_order(calls))));
      if (!result_.failure) twice.push_back(TRY(run_batch(next_order(2 * calls))));
    }
    if (result_.failure) return 0.0;
    TRY(runner_.stop());
    last_order_.clear();
    return static_cast<double>(std::ranges::min(twice) - std::ranges::min(once)) / calls;
  }

  Result<void> check_afterwards() {
    for (OutputSet* outputs : outputs_) {
      if (const auto damaged = check_canaries(*outputs)) {
        fail(damaged->verdict, damaged->detail);
        return {};
      }
    }
    const bool spare = options_.judge.effort == Effort::screen && estimate_ns_ > kHeavyNs;
    if (spare) return {};
    if (!last_order_.empty()) TRY(compare_with_fresh_runner(last_order_));
    if (!result_.failure) TRY(compare_with_truth());
    return {};
  }

  // The sets of the last calls of a batch, latest first; of a heavy problem one of them.
  std::vector<size_t> to_compare(const std::vector<size_t>& order) {
    if (estimate_ns_ > kHeavyNs) return {rng_.pick(order)};
    std::vector<size_t> sets;
    for (size_t i = order.size(); i-- > 0 && sets.size() < kComparedCalls;) {
      if (std::ranges::find(sets, order[i]) == sets.end()) sets.push_back(order[i]);
    }
    return sets;
  }

  // What the last calls of a batch left, against what a process makes that has seen nothing else.
  Result<void> compare_with_fresh_runner(const std::vector<size_t>& order) {
    const std::vector<size_t> compared = to_compare(order);
    // A spare one, or for what may be huge that of the next set, which is written over next.
    OutputSet* again = compared.size() == 1 ? outputs_[(compared[0] + 1) % sets_.size()]
                                            : TRY(options_.sets->outputs(
                                                  static_cast<int>(sets_.size())));
    Runner fresh = TRY(options_.host->spawn());
    if (!keep(TRY(fresh.load(options_.kernel_fd, problem_, options_.call_max)))) return {};
    for (const size_t set : compared) {
      for (OutputMemory& output : *again) output.poison(std::byte{0x5b});
      TRY(fresh.resume());
      Outcome outcome = TRY(fresh.bind(0, sets_[set]->files(), files_of(*again)));
      const int64_t slots[] = {0};
      if (!failure_of(outcome)) outcome = TRY(fresh.run(slots, options_.call_max));
      if (!keep(outcome)) return {};
      TRY(fresh.stop());
      for (size_t i = 0; i < again->size(); ++i) {
        const auto a = std::as_const((*again)[i]).data();
        const auto b = std::as_const((*outputs_[set])[i]).data();
        if (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0) continue;
        if (options_.determinism == Determinism::budget &&
            TRY(agree(problem_.outputs[i], b, a, options_.closeness[i], pool_))) {
          result_.nondeterministic = true;
          continue;
        }
        fail(Verdict::wrong_output,
             fmt::format("output {} of a timed call is not what a fresh process computes from the "
                         "same inputs",
                         i));
        return {};
      }
    }
    return {};
  }

  // The sets whose truth is known, with their own contents again, in the process that was timed.
  Result<void> compare_with_truth() {
    undo_changes();
    Budget budget(problem_, options_.precision);
    for (size_t set = 0; set < sets_.size() && set < 2; ++set) {
      if (sets_[set]->set.truths.empty()) continue;
      for (OutputMemory& output : *outputs_[set]) output.poison(std::byte{0x5d});
      TRY(runner_.resume());
      TRY(run_batch({set}));
      if (result_.failure) return {};
      TRY(runner_.stop());
      for (size_t i = 0; i < problem_.outputs.size(); ++i) {
        const OutputTruth& truth = sets_[set]->set.truths[i];
        const auto got = std::as_const((*outputs_[set])[i]).data();
        budget.add(i, compare_output(problem_.outputs[i], got, truth, pool_), truth,
                   "after timing");
      }
    }
    if (const auto wrong = budget.verdict()) fail(Verdict::wrong_output, *wrong);
    return {};
  }

  Result<void> put_back() {
    undo_changes();
    options_.oracle->resume();
    return {};
  }

  Runner& runner_;
  const TimingOptions& options_;
  const Problem& problem_;
  Rng& rng_;
  ThreadPool* pool_;
  std::vector<HeldSet*> sets_;
  std::vector<OutputSet*> outputs_;
  std::vector<size_t> rotation_, last_order_;
  size_t next_ = 0;
  std::vector<Swap> swaps_;
  int64_t estimate_ns_ = 1;
  TimingPlan plan_;
  EmptyBatch empty_;
  TimingResult result_;
};

}  // namespace

TimingPlan plan_timing(Effort effort, int64_t candidate_ns, int64_t baseline_ns, int set_count,
                       bool cold, int64_t batch_ns) {
  const int64_t candidate = std::max<int64_t>(1, candidate_ns);
  const int64_t baseline = std::max<int64_t>(1, baseline_ns);
  const int64_t slower = std::max(candidate, baseline);
  const int64_t batch = batch_ns > 0               ? batch_ns
                        : effort == Effort::screen ? 8 * kMs
                        : effort == Effort::full   ? 12 * kMs
                                                   : 20 * kMs;
  TimingPlan plan;
  int64_t calls = std::clamp<int64_t>(batch / slower, 1, 4096);
  // Whole rotations, so that every call finds its data as cold as every other.
  if (cold && calls > set_count) calls = (calls + set_count - 1) / set_count * set_count;
  plan.calls = static_cast<int32_t>(calls);
  plan.warm_calls = slower < kHeavyNs;
  const int64_t pair_ns = calls * (candidate + baseline);
  switch (effort) {
    case Effort::screen:
      plan.pairs = static_cast<int>(std::clamp<int64_t>(180 * kMs / pair_ns, 3, 9));
      if (slower > 1000 * kMs) plan.pairs = 1;
      break;
    case Effort::full:
      plan.pairs = static_cast<int>(std::clamp<int64_t>(1000 * kMs / pair_ns, 5, 15));
      if (slower > 1000 * kMs) plan.pairs = 3;
      break;
    case Effort::confirm:
      plan.pairs = static_cast<int>(
          std::clamp<int64_t>(1500 * kMs / (calls * std::min(candidate, baseline)) + 1, 3, 21));
      break;
  }
  return plan;
}

Result<TimingResult> time_candidate(Runner& runner, const TimingOptions& options, Rng& rng,
                                    ThreadPool* pool) {
  return Session(runner, options, rng, pool).run();
}

}  // namespace ke
