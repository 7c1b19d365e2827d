// SPDX-License-Identifier: Apache-2.0
//
// Windows that slide over the last dimensions of a tensor: what convolutions and pools share.
#pragma once

#include <string_view>
#include <vector>

#include "ir/lower/call.hpp"

namespace ke::ir {

// Along one dimension: output i covers the places i * stride - padding + tap * dilation of the
// operand, for each tap; those outside [0, extent) are padding.
struct Window {
  int64_t extent = 0;  // of the operand
  int64_t taps = 1, stride = 1, padding = 0, dilation = 1;

  int64_t reach() const { return dilation * (taps - 1) + 1; }  // from the first tap to the last
};

// What one tap of one output reads, and whether it is there: guards the load.
struct Tap {
  ExprPtr place, inside;
};
Tap within(const ExprPtr& place, int64_t extent);
Tap tap_of(const Window& window, const ExprPtr& output, const ExprPtr& tap);

ExprPtr both(const ExprPtr& a, const ExprPtr& b);  // logical_and
// a * factor + b, in int64
ExprPtr multiply_add(const ExprPtr& a, int64_t factor, const ExprPtr& b);

// One integer a dimension; a single one stands for all, none for `absent`. At least `least`, and
// small enough that no product with an extent overflows.
Result<std::vector<int64_t>> by_dimension(const Call& call, size_t position, std::string_view name,
                                          const std::vector<int64_t>& absent, int64_t least);

}  // namespace ke::ir
