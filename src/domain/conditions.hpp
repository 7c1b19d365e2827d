// SPDX-License-Identifier: Apache-2.0
//
// What decides a verdict beside the problem, the kernel and the machine. Evaluations made under
// different conditions are never taken for each other.
#pragma once

#include <string>

#include "base/json_fwd.hpp"
#include "base/result.hpp"
#include "domain/problem.hpp"

namespace ke {

struct Conditions {
  Precision precision = Precision::strict;
  std::string dtype = "as-is";     // or fp16, bf16
  std::string libraries = "none";  // the library policy in force: none, listed or any
  Determinism determinism = Determinism::bitwise;
  int32_t shape_cases = 1;
  int32_t judge_version = 0;
  bool operator==(const Conditions&) const = default;
};

// "strict, as-is, libraries none, judge 2": a part of the scope. Equal for equal conditions alone.
std::string to_text(const Conditions& conditions);

Json encode(const Conditions& conditions);
Result<Conditions> decode_conditions(const Json& json);

}  // namespace ke
