// SPDX-License-Identifier: Apache-2.0
//
// Screens a problem with decoys (DESIGN D3): outputs that no honest kernel would give. One that
// passes says that the problem cannot tell right from wrong there; the problem is flagged, never
// removed.
#pragma once

#include <string>
#include <vector>

#include "base/rng.hpp"
#include "eval/budget.hpp"
#include "eval/sets.hpp"

namespace ke {

enum class Decoy : uint8_t { zeros, ones, mean, echo, permuted, half };

struct AdmissionReport {
  std::vector<Decoy> passed;
  // An output that needs no work passes. (A passing half-precision decoy is told by `passed`: the
  // output may be exact in half precision, which is no fault of the problem.)
  bool trivial() const;
};

// Every decoy as the outputs of the two nominal sets, under the problem's budget.
Result<AdmissionReport> screen_problem(const Problem& problem, SetStore& sets, Precision precision,
                                       Rng& rng, ThreadPool* pool);

// Rounded to the nearest half-precision number, ties to even.
double round_to_half(double value);

}  // namespace ke

template <>
inline constexpr std::array<std::string_view, 6> ke::kEnumNames<ke::Decoy>{
    "zeros", "ones", "mean", "echo", "permuted", "half"};
