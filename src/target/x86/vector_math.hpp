// SPDX-License-Identifier: Apache-2.0
//
// Mathematical functions as sources of generic vector code: polynomials for float32, the C library
// lane by lane for the rest. Within 2 ulp of the true value over their whole domain, with IEEE
// results at infinities, NaN, zeros, subnormals and overflow (vector_math_test measures it).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ke::x86 {

struct HelperSource {
  std::vector<std::string> uses;  // keys of other helpers
  std::string text;
};

// The helper "what:type", for what = a unary operation's name and a floating type of any lanes
// ("f32x8", "f64x4", "f32"). Empty when there is none.
std::optional<HelperSource> math_helper(std::string_view what, std::string_view type);

}  // namespace ke::x86
