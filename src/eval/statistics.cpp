// SPDX-License-Identifier: Apache-2.0
//
// Medians and their order-statistic intervals.
#include "eval/statistics.hpp"

#include <algorithm>
#include <cmath>

#include "base/assert.hpp"

namespace ke {
namespace {

// Largest k such that P(Binomial(n, 1/2) < k) <= 2.5 %: the interval is then from the k-th smallest
// to the k-th largest value. 0 when n < 6.
int64_t order_of_95_percent(int64_t n) {
  double probability = std::pow(0.5, static_cast<double>(n));  // of exactly i below the median
  double below = probability;
  int64_t k = 0;
  while (below <= 0.025 && k < n / 2) {
    ++k;
    probability *= static_cast<double>(n - k + 1) / static_cast<double>(k);
    below += probability;
  }
  return k;
}

}  // namespace

double median(std::vector<double> values) {
  KE_ASSERT(!values.empty());
  std::sort(values.begin(), values.end());
  const size_t n = values.size();
  return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

int64_t median_ns(const std::vector<int64_t>& values) {
  return std::llround(median(std::vector<double>(values.begin(), values.end())));
}

Interval median_interval(std::vector<double> values) {
  KE_ASSERT(!values.empty());
  std::sort(values.begin(), values.end());
  const int64_t n = static_cast<int64_t>(values.size());
  const int64_t k = n < 1000 ? order_of_95_percent(n)
                             : static_cast<int64_t>(static_cast<double>(n) / 2 -
                                                    0.98 * std::sqrt(static_cast<double>(n)));
  const Interval extremes{median(values), values.front(), values.back()};
  if (k == 0) {
    const double range = extremes.high - extremes.low;
    return {extremes.middle, std::max(0.0, extremes.low - range / 2), extremes.high + range / 2};
  }
  return {extremes.middle, values[static_cast<size_t>(k - 1)], values[static_cast<size_t>(n - k)]};
}

Interval paired_speedup(const std::vector<int64_t>& baseline_ns,
                        const std::vector<int64_t>& candidate_ns) {
  KE_ASSERT(baseline_ns.size() == candidate_ns.size() && !baseline_ns.empty());
  std::vector<double> ratios;
  ratios.reserve(baseline_ns.size());
  for (size_t i = 0; i < baseline_ns.size(); ++i) {
    ratios.push_back(static_cast<double>(std::max<int64_t>(1, baseline_ns[i])) /
                     static_cast<double>(std::max<int64_t>(1, candidate_ns[i])));
  }
  return median_interval(std::move(ratios));
}

double drift_of(const std::vector<int64_t>& samples_ns) {
  if (samples_ns.size() < 9) return 1;
  const auto third = static_cast<std::ptrdiff_t>(samples_ns.size() / 3);
  const std::vector<int64_t> first(samples_ns.begin(), samples_ns.begin() + third);
  const std::vector<int64_t> last(samples_ns.end() - third, samples_ns.end());
  return static_cast<double>(median_ns(last)) /
         static_cast<double>(std::max<int64_t>(1, median_ns(first)));
}

bool is_tie(const Interval& speedup) {
  if (speedup.low <= 1 && speedup.high >= 1) return true;
  return std::fabs(speedup.middle - 1) <= speedup.half_width();
}

}  // namespace ke
