// SPDX-License-Identifier: Apache-2.0
#include "eval/baselines.hpp"

#include <algorithm>

#include "base/assert.hpp"
#include "eval/statistics.hpp"

namespace ke {
namespace {
constexpr int kRepeats = 5;
}  // namespace

Result<int64_t> Baselines::measure(BaselineKind kind, const std::vector<int64_t>& set_ids) {
  KE_ASSERT(!set_ids.empty());
  // The first call pays for views, caches and, with torch.compile, guards; then all sets once.
  const Nanoseconds first = TRY(oracle_.ring(kind, {set_ids[0]}));
  if (first.count() < kHeavyNs / 10) TRY(oracle_.ring(kind, set_ids));
  Nanoseconds warm = TRY(oracle_.ring(kind, {set_ids.back()}));
  int64_t& fastest = fastest_ns_[static_cast<size_t>(kind)];
  fastest = std::min(first, warm).count();
  if (warm.count() > kHeavyNs) return fastest;
  for (int i = 0; i < 2; ++i) warm = std::min(warm, TRY(oracle_.ring(kind, {set_ids.back()})));
  const int64_t calls = std::clamp<int64_t>(2'000'000 / std::max<int64_t>(1, warm.count()), 1, 256);
  std::vector<int64_t> samples;
  size_t next = 0;
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    std::vector<int64_t> batch;
    for (int64_t i = 0; i < calls; ++i) batch.push_back(set_ids[next++ % set_ids.size()]);
    const Nanoseconds taken = TRY(oracle_.ring(kind, batch));
    samples.push_back(std::max<int64_t>(1, (taken.count() - doorbell_ns_) / calls));
  }
  fastest = *std::min_element(samples.begin(), samples.end());
  return median_ns(samples);
}

Result<bool> Baselines::stale() {
  compile_ready_ = TRY(oracle_.baseline(BaselineKind::compile)) == BaselineState::ready;
  if (!compile_ready_) compile_ns_.reset();  // not built yet, or lost
  return !eager_ns_ || (compile_ready_ && !compile_ns_);
}

Result<void> Baselines::await_compile(os::Clock& clock, Nanoseconds wait_max) {
  const Nanoseconds deadline = clock.now() + wait_max;
  oracle_.resume();  // it compiles in a process of the oracle's, which timing stops
  while (TRY(oracle_.baseline(BaselineKind::compile)) == BaselineState::building &&
         clock.now() < deadline) {
    clock.sleep_for(std::chrono::milliseconds(20));
  }
  return {};
}

Result<void> Baselines::measure_all(const std::vector<int64_t>& set_ids) {
  std::vector<int64_t> empty;
  for (int i = 0; i < 9; ++i) empty.push_back(TRY(oracle_.ring(BaselineKind::eager, {})).count());
  doorbell_ns_ = median_ns(empty);
  eager_ns_ = TRY(measure(BaselineKind::eager, set_ids));
  if (!compile_ready_) return {};
  const Result<int64_t> compiled = measure(BaselineKind::compile, set_ids);
  if (compiled) {
    compile_ns_ = *compiled;
  } else {
    lose_compile();
  }
  return {};
}

void Baselines::lose_compile() {
  compile_ready_ = false;
  compile_ns_.reset();
}

BaselineKind Baselines::better() const {
  KE_ASSERT(eager_ns_.has_value());
  return compile_ns_ && *compile_ns_ < *eager_ns_ ? BaselineKind::compile : BaselineKind::eager;
}

std::vector<BaselineKind> Baselines::available() const {
  std::vector<BaselineKind> kinds{BaselineKind::eager};
  if (compile_ns_) kinds.push_back(BaselineKind::compile);
  return kinds;
}

int64_t Baselines::better_ns() const { return *time_ns(better()); }

}  // namespace ke
