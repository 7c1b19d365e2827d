// SPDX-License-Identifier: Apache-2.0
//
// Products (matrix products and convolutions) and what they cost when only sums over parts of their
// result are needed: an axis that belongs to one operand is summed there, before multiplying.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/graph.hpp"

namespace ke::ir {

enum class Side : uint8_t { left, right, both };

struct Product {
  std::vector<int64_t> extents;  // of the result's axes
  std::vector<Side> sides;       // of each axis: the operand that it comes from
  double left_elements = 0;
  double right_elements = 0;
  double depth = 1;  // multiply-adds of one result
  // Of convolutions: the axes from here on are places (they come from the left operand).
  size_t first_place = SIZE_MAX;
  int64_t groups = 1;  // of axis 1: gathering can't merge channels of different groups
  double depth_of_all_places = 1;  // multiply-adds of one sum over all places
};

std::optional<Product> product_of(const Graph& graph, const Node& node);

// Operations when each axis is gathered into `kept` sums, adding up the operands included.
double folded_flops(const Product& product, const std::vector<int64_t>& kept);

}  // namespace ke::ir
