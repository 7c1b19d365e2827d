// SPDX-License-Identifier: Apache-2.0
//
// Estimates from timing samples. Samples of one call on a shared machine are skewed to the right
// (interrupts, other tenants, page faults) and drift slowly (clock, heat). The minimum rewards
// lucky runs and the mean is pulled by the tail, so a single kernel's time is the median. A
// comparison divides each candidate batch by the baseline batch taken right beside it, which
// cancels drift, and takes the median of those ratios.
//
// The 95 % interval of that median comes from order statistics (the sign test, Conover, Practical
// Nonparametric Statistics, 3.2): it assumes nothing about the distribution, needs no random draws,
// and does not undercover in small samples as the bootstrap does. With fewer than 6 pairs even
// the extremes cover less than 95 %: they are widened by the range, which is a convention, not a
// theorem, and keeps a handful of pairs from claiming much.
#pragma once

#include <cstdint>
#include <vector>

namespace ke {

// Middle value, or the mean of the two middle ones. The list must not be empty.
double median(std::vector<double> values);
int64_t median_ns(const std::vector<int64_t>& values);

struct Interval {
  double middle = 0;
  double low = 0;
  double high = 0;
  double half_width() const { return (high - low) / 2; }
};

// The median with its 95 % interval. The list must not be empty.
Interval median_interval(std::vector<double> values);

// Ratios baseline[i] / candidate[i] of pairs taken beside each other; both of one length > 0.
// A time of zero or less counts as one nanosecond.
Interval paired_speedup(const std::vector<int64_t>& baseline_ns,
                        const std::vector<int64_t>& candidate_ns);

// Whether a speed-up cannot be told from 1: the interval holds 1, or 1 is nearer than half of its
// width.
// Median of the last third over the median of the first: how much a machine changed while the same
// thing was timed again and again. 1 for fewer than nine samples, too few to say.
double drift_of(const std::vector<int64_t>& samples_ns);

bool is_tie(const Interval& speedup);

}  // namespace ke
