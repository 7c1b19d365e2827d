// SPDX-License-Identifier: Apache-2.0
//
// What the samples of the two baselines say of each other.
#pragma once

#include <optional>
#include <vector>

#include "domain/evaluation.hpp"
#include "eval/statistics.hpp"

namespace ke {

inline constexpr double kClearlySlower = 1.3;  // no more samples are worth taking

// torch.compile's time over eager's, of the pairs that have both.
Interval compile_over_eager(const Measurement& measurement);

// It then has no part in min(eager, torch.compile), so a confirmation samples it no more.
bool compile_is_clearly_slower(const Measurement& measurement);
bool compile_was_left_out(const Measurement& measurement);

// The medians of the samples; where there are none, what is known from before. A torch.compile that
// was left out goes by its ratio to eager, because the machine may have changed since.
void take_baseline_medians(Measurement& measurement, std::optional<int64_t> eager_known,
                           std::optional<int64_t> compile_known);

// Of the faster one, by the median.
const std::vector<int64_t>& better_samples(const Measurement& measurement);

}  // namespace ke
