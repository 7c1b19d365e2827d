// SPDX-License-Identifier: Apache-2.0
#include "eval/device/timing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "eval/baseline_samples.hpp"
#include "eval/correctness.hpp"
#include "eval/floor.hpp"
#include "eval/statistics.hpp"
#include "eval/timing.hpp"

namespace ke::device {
namespace {

using launcher::LaunchFailure;
using launcher::LaunchMode;
using launcher::Outcome;

constexpr size_t kComparedSlots = 4;  // of a watched batch, at random
constexpr int kGraphPairs = 7;
// Of a batch, unless one call takes longer. A device that nobody else uses is far steadier than a
// processor, and many search at the same time.
constexpr int64_t kBatchNs = 6'000'000;
constexpr int64_t kWallBatchNs = 12'000'000;  // by the judge's clock, which sees processes wake up
constexpr int64_t kConfirmNs = 2'000'000'000;
constexpr int64_t kConfirmPairsMin = 7;
constexpr int kEmptyBatches = 9;
constexpr double kDeviceDrift = 0.2;
// A call with contents that were never seen, against the same call again: an honest one may take
// this many times as long, and this much more by a clock that is not the device's.
constexpr double kUnseenFactor = 3;
constexpr int64_t kUnseenNs = 30'000;
constexpr int kUnseenTrials = 3, kSeenCalls = 4;
// A call in a batch that visits each slot once, against one of long batches: as above.
constexpr double kOnceFactor = 1.5;
constexpr int64_t kOnceNs = 50'000;  // a batch
constexpr int kOnceTrials = 5;

class DeviceTiming {
 public:
  DeviceTiming(DeviceRunner& runner, const DeviceTimingOptions& options, Rng& rng)
      : runner_(runner), options_(options), sets_(*options.sets), rng_(rng) {}

  Result<DeviceTimingResult> run() {
    TRY(prepare());
    if (!result_.failure) TRY(sample());
    if (!result_.failure) TRY(try_unseen());
    if (!result_.failure) TRY(try_once_each());
    if (!result_.failure) conclude();
    if (!result_.failure) TRY(sample_graphs());
    if (!result_.failure) TRY(watch(rotation_.size(), rotation_.size()));
    return std::move(result_);
  }

 private:
  bool screening() const { return options_.judge.effort == Effort::screen; }

  Result<void> prepare() {
    ids_ = TRY(fill_timing_slots(sets_));
    rotation_.resize(ids_.size());
    std::iota(rotation_.begin(), rotation_.end(), 0);
    rng_.shuffle(rotation_);
    TRY(time_empty_batches());
    int64_t taken = 0;
    for (int round = 0; round < 2 && !result_.failure; ++round) {  // the first one maps and loads
      taken = TRY(batch(rotation_, LaunchMode::plain));
    }
    if (result_.failure) return {};
    const auto calls = static_cast<int64_t>(rotation_.size());
    plan_ = plan_timing(options_.judge.effort, std::max<int64_t>(1, taken / calls),
                        options_.baselines->fastest_ns(), static_cast<int>(calls), sets_.cold(),
                        options_.batch_clock == BatchClock::device ? kBatchNs : kWallBatchNs);
    plan_.calls = std::min(plan_.calls, launcher::kCallsPerBatchMax);
    shorten(taken / calls);
    return {};
  }

  // Of a confirmation, when all sides of its pairs together would take long.
  void shorten(int64_t candidate_ns) {
    if (options_.judge.effort != Effort::confirm) return;
    int64_t pair_ns = candidate_ns;
    for (const BaselineKind kind : options_.baselines->available()) {
      pair_ns += options_.baselines->time_ns(kind).value_or(0);
    }
    const int64_t affordable = kConfirmNs / std::max<int64_t>(1, plan_.calls * pair_ns);
    plan_.pairs = std::min(plan_.pairs, static_cast<int>(std::max(kConfirmPairsMin, affordable)));
  }

  // What ringing for no call at all takes by the judge's clock.
  Result<void> time_empty_batches() {
    if (options_.batch_clock == BatchClock::device) return {};
    std::vector<int64_t> samples;
    for (int i = 0; i < kEmptyBatches && !result_.failure; ++i) {
      samples.push_back(TRY(batch({}, LaunchMode::plain)));
    }
    // The least: a batch is never said to be faster than it was.
    if (!samples.empty()) empty_ns_ = *std::ranges::min_element(samples);
    return {};
  }

  // Time of a whole batch of the candidate's; 0 after a failure.
  Result<int64_t> batch(const std::vector<int>& order, LaunchMode mode) {
    const Nanoseconds start = options_.clock->now();
    const Outcome outcome = TRY(runner_.run(order, {.mode = mode}, options_.call_max));
    const int64_t wall = (options_.clock->now() - start).count();
    if (const LaunchFailure* failure = failure_of(outcome)) {
      const int slot = order.empty() ? 0 : order.front();
      result_.failure = TRY(explain(runner_, sets_, *failure, slot, options_.call_max));
      return int64_t{0};
    }
    if (options_.batch_clock == BatchClock::judge) return std::max<int64_t>(1, wall - empty_ns_);
    const auto& times = std::get<std::vector<int64_t>>(outcome);
    return times.empty() ? int64_t{1} : std::max<int64_t>(1, times.front());
  }

  std::vector<int> next_order(int32_t calls) {
    std::vector<int> order;
    for (int32_t i = 0; i < calls; ++i) order.push_back(rotation_[next_++ % rotation_.size()]);
    return order;
  }

  // Outputs say nothing of earlier calls.
  Result<void> poison(const std::vector<int>& order) {
    poison_ = draw_poison(rng_, poison_);
    for (const int slot : std::set<int>(order.begin(), order.end())) {
      TRY(sets_.oracle().poison(sets_.at(slot).slot.id, static_cast<uint8_t>(poison_)));
    }
    return {};
  }

  // Other contents at an address that was seen before.
  Result<void> change_a_slot() {
    const auto count = static_cast<int64_t>(rotation_.size());
    TRY(sets_.fill(static_cast<int>(rng_.below(count)),
                   sets_.nominal(static_cast<int>(rng_.below(count)))));
    return {};
  }

  Result<int64_t> candidate_batch(const std::vector<int>& order, LaunchMode mode) {
    TRY(poison(order));
    if (plan_.warm_calls) TRY(batch({order.back()}, mode));
    return result_.failure ? int64_t{0} : TRY(batch(order, mode));
  }

  std::vector<int64_t> ids_of(const std::vector<int>& order) const {
    std::vector<int64_t> ids;
    for (const int slot : order) ids.push_back(ids_[static_cast<size_t>(slot)]);
    return ids;
  }

  // A batch of which nobody can know that its results will be looked at.
  Result<void> watch(size_t calls, size_t compared_max) {
    const std::vector<int> order = next_order(static_cast<int32_t>(calls));
    TRY(candidate_batch(order, LaunchMode::plain));
    const std::set<int> distinct(order.begin(), order.end());
    std::vector<int> compared(distinct.begin(), distinct.end());
    rng_.shuffle(compared);
    compared.resize(std::min(compared.size(), compared_max));
    for (const int slot : compared) {
      if (result_.failure) return {};
      TRY(collect(slot));
      if (result_.failure) return {};
      RunBudget budget(*options_.problem, options_.precision);
      result_.failure = TRY(compare_slot(sets_, *options_.problem, slot, budget));
      if (const auto wrong = budget.verdict(); wrong && !result_.failure) {
        result_.failure = DeviceFailure{Verdict::wrong_output, *wrong};
      }
      if (result_.failure) result_.failure->detail += " (in a call that was timed)";
    }
    return {};
  }

  Result<void> collect(int slot) {
    const Outcome outcome = TRY(runner_.collect({slot}, options_.call_max));
    if (const LaunchFailure* failure = failure_of(outcome)) {
      result_.failure = TRY(explain(runner_, sets_, *failure, slot, options_.call_max));
    }
    return {};
  }

  Result<void> sample() {
    Measurement& m = result_.measurement;
    std::vector<BaselineKind> kinds =
        screening() ? std::vector{options_.baselines->better()} : options_.baselines->available();
    const auto watched = static_cast<int>(rng_.below(plan_.pairs));
    for (int pair = 0; pair < plan_.pairs; ++pair) {
      TRY(change_a_slot());
      if (pair == watched) {
        TRY(watch(1 + static_cast<size_t>(rng_.below(plan_.calls)), kComparedSlots));
      }
      if (result_.failure) return {};
      const std::vector<int> order = next_order(plan_.calls);
      const int64_t taken = TRY(candidate_batch(order, LaunchMode::plain));
      if (result_.failure) return {};
      m.candidate_ns.push_back(std::max<int64_t>(1, taken / plan_.calls));
      TRY(sample_baselines(kinds, ids_of(order), pair == 0));
      if (compile_is_clearly_slower(m)) kinds = {BaselineKind::eager};
      if (screening() && pair == 1 && options_.judge.best_ns &&
          static_cast<double>(median_ns(m.candidate_ns)) >
              kClearlySlower * static_cast<double>(*options_.judge.best_ns)) {
        result_.stopped_early = plan_.pairs > 2;
        return {};
      }
    }
    return {};
  }

  // Contents come again while timing, and what keeps its results by contents then computes nothing.
  // It gives itself away where contents are new: slow at first and fast thereafter, every time.
  Result<void> try_unseen() {
    if (screening()) return {};
    int64_t unseen = 0, seen = 0;
    for (int trial = 0; trial < kUnseenTrials; ++trial) {
      const int slot = rotation_[static_cast<size_t>(trial) % rotation_.size()];
      const int other = rotation_[static_cast<size_t>(trial + 1) % rotation_.size()];
      TRY(sets_.fill(slot, sets_.unseen()));
      unseen = TRY(call_after(other, slot));
      seen = unseen;
      for (int i = 0; i < kSeenCalls && !result_.failure; ++i) {
        seen = std::min(seen, TRY(call_after(other, slot)));
      }
      if (result_.failure) return {};
      TRY(sets_.fill(slot, sets_.nominal(slot)));  // one that results can be compared with
      const double most = kUnseenFactor * static_cast<double>(seen);
      if (static_cast<double>(unseen) <= most + static_cast<double>(kUnseenNs)) return {};
    }
    result_.failure = DeviceFailure{
        Verdict::implausible_time,
        fmt::format("a call with inputs that were never seen takes {} ns and the same call again "
                    "{} ns: it keeps its results",
                    unseen, seen)};
    return {};
  }

  // A module may find out in its process which calls are to come, and leave out those whose results
  // others overwrite. In a batch that visits each slot once there are none, and the last of these
  // batches is compared as a whole.
  Result<void> try_once_each() {
    const auto slots = static_cast<int64_t>(rotation_.size());
    const bool repeats = plan_.calls > slots;
    if (screening() || options_.batch_clock == BatchClock::device || !repeats) return {};
    const int64_t in_long_ones = median_ns(result_.measurement.candidate_ns);
    const auto most = static_cast<int64_t>(kOnceFactor * static_cast<double>(in_long_ones)) +
                      kOnceNs / slots;
    int64_t least = INT64_MAX;
    for (int trial = 0; trial < kOnceTrials; ++trial) {
      const int64_t taken = TRY(candidate_batch(rotation_, LaunchMode::plain));
      if (result_.failure) return {};
      least = std::min(least, taken / slots);
      if (least <= most) return {};
    }
    result_.failure = DeviceFailure{
        Verdict::implausible_time,
        fmt::format("a call takes {} ns in a batch that visits each slot once, and {} ns in longer "
                    "ones: it leaves calls out",
                    least, in_long_ones)};
    return {};
  }

  // Time of one call, with another one before it.
  Result<int64_t> call_after(int other, int slot) {
    TRY(poison({other, slot}));
    TRY(batch({other}, LaunchMode::plain));
    return result_.failure ? int64_t{0} : TRY(batch({slot}, LaunchMode::plain));
  }

  // Calls that are not timed. Where slots are few they are large, and a baseline's allocator must
  // have seen each of its results come and go, or the timed calls would pay for memory. It keeps
  // what it has from then on: filling in what is known gives nothing back.
  static std::vector<int64_t> warming(const std::vector<int64_t>& ids, bool first) {
    const std::set<int64_t> distinct(ids.begin(), ids.end());
    if (distinct.size() > 4 || !first) return {ids.back()};
    std::vector<int64_t> calls(distinct.begin(), distinct.end());
    calls.insert(calls.end(), distinct.begin(), distinct.end());
    return calls;
  }

  Result<void> sample_baselines(std::vector<BaselineKind>& kinds,
                                const std::vector<int64_t>& ids, bool first) {
    Measurement& m = result_.measurement;
    const int64_t doorbell =
        options_.batch_clock == BatchClock::judge ? options_.baselines->doorbell_ns() : 0;
    runner_.set_running(false);
    for (const BaselineKind kind : std::vector(kinds)) {
      if (plan_.warm_calls) (void)options_.baseline_oracle->ring(kind, warming(ids, first));
      const Result<Nanoseconds> taken = options_.baseline_oracle->ring(kind, ids);
      auto& samples = kind == BaselineKind::eager ? m.eager_ns : m.compile_ns;
      if (taken) {
        samples.push_back(std::max<int64_t>(1, (taken->count() - doorbell) / std::ssize(ids)));
        continue;
      }
      if (kind == BaselineKind::eager) return taken.error();
      options_.baselines->lose_compile();
      samples.clear();
      kinds = {BaselineKind::eager};
    }
    return {};
  }

  void conclude() {
    Measurement& m = result_.measurement;
    m.calls_per_batch = plan_.calls;
    m.cold = sets_.cold();
    m.time_ns = median_ns(m.candidate_ns);
    take_baseline_medians(m, options_.baselines->time_ns(BaselineKind::eager),
                          options_.baselines->time_ns(BaselineKind::compile));
    const Interval speedup = paired_speedup(better_samples(m), m.candidate_ns);
    m.speedup = speedup.middle;
    m.speedup_low = speedup.low;
    m.speedup_high = speedup.high;
    m.drift = drift_of(better_samples(m));
    result_.tie = is_tie(speedup);
    result_.drifted = std::abs(m.drift - 1) > kDeviceDrift;
    result_.too_small = m.time_ns < kLaunchNs;
    const int64_t least = impossible_below_ns(*options_.problem, options_.device, m.cold);
    if (m.time_ns < least) {
      result_.failure = DeviceFailure{
          Verdict::implausible_time,
          fmt::format("{} ns a call, when moving the bytes that must move takes at least {} ns",
                      m.time_ns, least)};
    }
  }

  // Both sides captured once and replayed: what is left when launching costs next to nothing.
  Result<void> sample_graphs() {
    // By the device's events alone: a candidate that captures for itself has nothing to capture.
    if (screening() || options_.batch_clock == BatchClock::judge) return {};
    std::vector<int64_t> ours, theirs;
    for (int pair = 0; pair < kGraphPairs; ++pair) {
      const std::vector<int> order = next_order(plan_.calls);
      const int64_t taken = TRY(candidate_batch(order, LaunchMode::graph));
      if (result_.failure) return {};
      const std::vector<int64_t> ids = ids_of(order);
      const Result<Rung> rung = options_.bench->ring(BaselineKind::eager, BaselineMode::graph, ids);
      if (!rung) return {};  // a model that cannot be captured has no such figure
      if (pair == 0) continue;  // it captured
      ours.push_back(taken / plan_.calls);
      theirs.push_back(rung->device_ns / plan_.calls);
    }
    result_.measurement.graph_ns = median_ns(ours);
    result_.measurement.graph_baseline_ns = median_ns(theirs);
    return {};
  }

  DeviceRunner& runner_;
  const DeviceTimingOptions& options_;
  DeviceSets& sets_;
  Rng& rng_;
  std::vector<int64_t> ids_;   // of the oracle's slots, by index
  std::vector<int> rotation_;  // indices, shuffled
  size_t next_ = 0;
  TimingPlan plan_;
  int64_t empty_ns_ = 0;  // of a batch, by the judge's clock
  std::byte poison_{0};
  DeviceTimingResult result_;
};

}  // namespace

Result<InputSet> DeviceBaselineOracle::make_set(const SetRequest& /*request*/) {
  return Error{Errc::internal, "an oracle on a device makes no sets in memory files"};
}

Result<Nanoseconds> DeviceBaselineOracle::ring(BaselineKind kind,
                                               const std::vector<int64_t>& slots) {
  const Rung rung = TRY(oracle_.device_bench()->ring(kind, BaselineMode::plain, slots));
  return clock_ == BatchClock::device ? Nanoseconds(rung.device_ns) : rung.wall;
}

Result<std::vector<int64_t>> fill_timing_slots(DeviceSets& sets) {
  std::vector<int64_t> ids;
  for (int i = 0; i < sets.timing_count(); ++i) {
    const FilledSlot* filled = TRY(sets.fill(i, sets.nominal(i)));
    ids.push_back(filled->slot.id);
  }
  return ids;
}

Result<DeviceTimingResult> time_on_device(DeviceRunner& runner, const DeviceTimingOptions& options,
                                          Rng& rng) {
  return DeviceTiming(runner, options, rng).run();
}

}  // namespace ke::device
