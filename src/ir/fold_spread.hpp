// SPDX-License-Identifier: Apache-2.0
//
// How a value that is linear in a product's result spreads over the axes of that result, and which
// of them have been summed on the way. The steps keep this exact or refuse.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace ke::ir {

// A part of a dimension: so many steps along an axis of the product's result, or (-1) along which
// the value only repeats or another tensor varies. The extent is above 1.
struct Factor {
  int axis = -1;
  int64_t extent = 2;
  bool operator==(const Factor&) const = default;
};

struct Spread {
  std::vector<std::vector<Factor>> layout;  // of each dimension, outermost first
  std::vector<int64_t> kept;   // of each axis: how many sums over parts of it the value needs
  std::vector<bool> weighted;  // axes along which elements were scaled each by its own factor
  int summed_by = -1;          // the last node that lessened `kept`; -1: none did
  bool operator==(const Spread&) const = default;

  static Spread of_result(const std::vector<int64_t>& extents);
  std::vector<int64_t> shape() const;
  double results() const;  // how many sums, over all axes
};

std::optional<Spread> reshaped(const Spread& spread, const std::vector<int64_t>& shape);
std::optional<Spread> permuted(const Spread& spread, const std::vector<int64_t>& order);
std::optional<Spread> broadcast(const Spread& spread, const std::vector<int64_t>& shape);
// Multiplied by a tensor of this shape; `spread` has been broadcast to the result.
Spread weighted_by(const Spread& spread, const std::vector<int64_t>& shape);
std::optional<Spread> summed(const Spread& spread, const std::vector<int64_t>& dims, bool keep_dims,
                             int node);
// Sums over windows of the last `rank` dimensions.
std::optional<Spread> pooled(const Spread& spread, const std::vector<int64_t>& shape, size_t rank,
                             int node);

}  // namespace ke::ir
