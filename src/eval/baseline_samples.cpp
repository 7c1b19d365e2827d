// SPDX-License-Identifier: Apache-2.0
#include "eval/baseline_samples.hpp"

#include <cmath>
#include <cstddef>

namespace ke {
namespace {

constexpr size_t kPairsOfCompile = 6;  // the fewest whose extremes cover 95 %

}  // namespace

Interval compile_over_eager(const Measurement& measurement) {
  const auto count = static_cast<std::ptrdiff_t>(measurement.compile_ns.size());
  const auto eager = measurement.eager_ns.begin();
  return paired_speedup(measurement.compile_ns, {eager, eager + count});
}

bool compile_is_clearly_slower(const Measurement& measurement) {
  const size_t pairs = measurement.compile_ns.size();
  return pairs >= kPairsOfCompile && pairs == measurement.eager_ns.size() &&
         compile_over_eager(measurement).low > kClearlySlower;
}

bool compile_was_left_out(const Measurement& measurement) {
  return !measurement.compile_ns.empty() &&
         measurement.compile_ns.size() < measurement.eager_ns.size();
}

void take_baseline_medians(Measurement& measurement, std::optional<int64_t> eager_known,
                           std::optional<int64_t> compile_known) {
  Measurement& m = measurement;
  m.eager_median_ns = m.eager_ns.empty() ? eager_known : median_ns(m.eager_ns);
  m.compile_median_ns = m.compile_ns.empty() ? compile_known : median_ns(m.compile_ns);
  if (compile_was_left_out(m)) {
    m.compile_median_ns = std::llround(compile_over_eager(m).middle *
                                       static_cast<double>(*m.eager_median_ns));
  }
}

const std::vector<int64_t>& better_samples(const Measurement& measurement) {
  const Measurement& m = measurement;
  const bool compile_is_better =
      m.eager_ns.empty() || (!m.compile_ns.empty() && !compile_was_left_out(m) &&
                             median_ns(m.compile_ns) < median_ns(m.eager_ns));
  return compile_is_better ? m.compile_ns : m.eager_ns;
}

}  // namespace ke
