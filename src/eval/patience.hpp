// SPDX-License-Identifier: Apache-2.0
//
// How long the judge waits for one call of a candidate.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "base/units.hpp"
#include "domain/limits.hpp"
#include "eval/evaluator.hpp"

namespace ke {

// A search need not wait long for a kernel far slower than eager, nor than the best it has, though
// always for `least`; a person's kernel may be slow. `eager_ns`: absent while it is unknown.
inline Nanoseconds longest_call(const Limits& limits, const JudgeOptions& options,
                                std::optional<int64_t> eager_ns, Nanoseconds least) {
  constexpr int64_t kHopeless = 5;  // times the best
  const Nanoseconds whole = limits.call_max;
  if (!eager_ns) return whole;
  const Nanoseconds grown = 50 * Nanoseconds(*eager_ns);
  if (options.effort == Effort::screen) {
    const Nanoseconds patience =
        options.best_ns ? kHopeless * Nanoseconds(*options.best_ns) : grown;
    return std::clamp<Nanoseconds>(patience, least, std::max(whole, grown));
  }
  return std::max(whole, grown);
}

}  // namespace ke
