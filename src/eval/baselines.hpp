// SPDX-License-Identifier: Apache-2.0
//
// What is known about the baselines' speed between evaluations: enough to choose the better one to
// alternate with, to size batches and to set time limits.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "oracle/oracle.hpp"
#include "os/clock.hpp"

namespace ke {

// A call from which on repeats are spared, and calls for checks alone.
inline constexpr int64_t kHeavyNs = 300'000'000;

class Baselines {
 public:
  explicit Baselines(Oracle& oracle) : oracle_(oracle) {}

  // Waits until torch.compile is ready or failed, or `wait_max` has passed, whichever is first.
  Result<void> await_compile(os::Clock& clock, Nanoseconds wait_max);

  // Whether there is something to measure: eager is unknown, or torch.compile has become ready.
  // Starts the building of torch.compile when asked first.
  Result<bool> stale();
  // Measures everything available. The sets' ids are rotated through. A torch.compile that fails
  // while it runs is lost: reports then have no figure against it.
  Result<void> measure_all(const std::vector<int64_t>& set_ids);

  std::optional<int64_t> time_ns(BaselineKind kind) const {
    return kind == BaselineKind::eager ? eager_ns_ : compile_ns_;
  }
  void lose_compile();
  BaselineKind better() const;
  std::vector<BaselineKind> available() const;
  int64_t better_ns() const;
  // The fastest sample of the better one: what batches are sized by, because other work on the
  // machine can only lengthen a sample.
  int64_t fastest_ns() const { return fastest_ns_[static_cast<size_t>(better())]; }

  // Median time of ringing for no calls at all, to be subtracted from a batch.
  int64_t doorbell_ns() const { return doorbell_ns_; }

 private:
  Result<int64_t> measure(BaselineKind kind, const std::vector<int64_t>& set_ids);

  Oracle& oracle_;
  std::optional<int64_t> eager_ns_, compile_ns_;
  std::array<int64_t, 2> fastest_ns_{1, 1};  // by kind
  int64_t doorbell_ns_ = 0;
  bool compile_ready_ = false;
};

}  // namespace ke
