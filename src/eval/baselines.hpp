// SPDX-License-Identifier: Apache-2.0
//
// What is known about the baselines' speed between evaluations: enough to choose the better one to
// alternate with, to size batches and to set time limits.
#pragma once

#include <optional>
#include <vector>

#include "oracle/oracle.hpp"

namespace ke {

class Baselines {
 public:
  explicit Baselines(Oracle& oracle) : oracle_(oracle) {}

  // Measures eager when nothing is known yet, and torch.compile once it is ready. `force` measures
  // again what is available. The sets' ids are rotated through.
  Result<void> refresh(const std::vector<int64_t>& set_ids, bool force);

  std::optional<int64_t> time_ns(BaselineKind kind) const {
    return kind == BaselineKind::eager ? eager_ns_ : compile_ns_;
  }
  BaselineKind better() const;
  std::vector<BaselineKind> available() const;
  int64_t better_ns() const;

  // Median time of ringing for no calls at all, to be subtracted from a batch.
  int64_t doorbell_ns() const { return doorbell_ns_; }

 private:
  Result<int64_t> measure(BaselineKind kind, const std::vector<int64_t>& set_ids);

  Oracle& oracle_;
  std::optional<int64_t> eager_ns_, compile_ns_;
  int64_t doorbell_ns_ = 0;
};

}  // namespace ke
