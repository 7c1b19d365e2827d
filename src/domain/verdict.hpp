// SPDX-License-Identifier: Apache-2.0
//
// What the judge found, as a type. Only `accepted` has a time and a fitness.
#pragma once

#include "base/enum_names.hpp"

namespace ke {

enum class Verdict : uint8_t {
  accepted,
  compile_error,  // did not build, or lacks ke_launch
  crashed,        // signal, exception, non-zero return, out of memory
  timed_out,
  wrong_output,   // outside the error budget, wrong shape, type or count
  out_of_bounds,  // touched a guard page or a canary
  input_mutated,  // tried to write an input
  nondeterministic,
  policy_violation,  // used what the library policy or the sandbox forbids
  implausible_time   // faster than the data can move
};

}  // namespace ke

template <>
inline constexpr std::array<std::string_view, 10> ke::kEnumNames<ke::Verdict>{
    "accepted",      "compile_error", "crashed",          "timed_out",        "wrong_output",
    "out_of_bounds", "input_mutated", "nondeterministic", "policy_violation", "implausible_time"};
