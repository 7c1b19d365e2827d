// SPDX-License-Identifier: Apache-2.0
#include "ir/fold_spread.hpp"

#include <algorithm>

namespace ke::ir {
namespace {

int64_t extent_of(const std::vector<Factor>& dimension) {
  int64_t extent = 1;
  for (const Factor& factor : dimension) extent *= factor.extent;
  return extent;
}

std::optional<size_t> wrapped(int64_t dim, size_t rank) {
  const int64_t at = dim < 0 ? dim + static_cast<int64_t>(rank) : dim;
  if (at < 0 || at >= static_cast<int64_t>(rank)) return std::nullopt;
  return static_cast<size_t>(at);
}

// Takes factors from the front of `left` until they make `extent`, splitting the last if need be.
std::optional<std::vector<Factor>> take(std::vector<Factor>& left, int64_t extent) {
  std::vector<Factor> taken;
  while (extent > 1) {
    if (left.empty()) return std::nullopt;
    Factor& front = left.front();
    if (extent % front.extent == 0) {
      extent /= front.extent;
      taken.push_back(front);
      left.erase(left.begin());
    } else if (front.extent % extent == 0) {
      taken.push_back({front.axis, extent});
      front.extent /= extent;
      extent = 1;
    } else {
      return std::nullopt;
    }
  }
  return taken;
}

}  // namespace

Spread Spread::of_result(const std::vector<int64_t>& extents) {
  Spread spread;
  spread.kept = extents;
  spread.weighted.assign(extents.size(), false);
  for (size_t axis = 0; axis < extents.size(); ++axis) {
    std::vector<Factor> dimension;
    if (extents[axis] > 1) dimension.push_back({static_cast<int>(axis), extents[axis]});
    spread.layout.push_back(std::move(dimension));
  }
  return spread;
}

std::vector<int64_t> Spread::shape() const {
  std::vector<int64_t> extents;
  for (const std::vector<Factor>& dimension : layout) extents.push_back(extent_of(dimension));
  return extents;
}

double Spread::results() const {
  double count = 1;
  for (const int64_t sums : kept) count *= static_cast<double>(sums);
  return count;
}

std::optional<Spread> reshaped(const Spread& spread, const std::vector<int64_t>& shape) {
  std::vector<Factor> left;
  for (const std::vector<Factor>& dimension : spread.layout) {
    left.insert(left.end(), dimension.begin(), dimension.end());
  }
  Spread out = spread;
  out.layout.clear();
  for (const int64_t extent : shape) {
    std::optional<std::vector<Factor>> dimension = take(left, extent);
    if (!dimension) return std::nullopt;
    out.layout.push_back(std::move(*dimension));
  }
  if (!left.empty()) return std::nullopt;
  return out;
}

std::optional<Spread> permuted(const Spread& spread, const std::vector<int64_t>& order) {
  Spread out = spread;
  out.layout.clear();
  for (const int64_t dim : order) {
    const std::optional<size_t> from = wrapped(dim, spread.layout.size());
    if (!from) return std::nullopt;
    out.layout.push_back(spread.layout[*from]);
  }
  return out;
}

std::optional<Spread> broadcast(const Spread& spread, const std::vector<int64_t>& shape) {
  if (shape.size() < spread.layout.size()) return std::nullopt;
  Spread out = spread;
  out.layout.insert(out.layout.begin(), shape.size() - spread.layout.size(), {});
  for (size_t d = 0; d < shape.size(); ++d) {
    if (out.layout[d].empty() && shape[d] > 1) out.layout[d].push_back({-1, shape[d]});
  }
  return out;
}

Spread weighted_by(const Spread& spread, const std::vector<int64_t>& shape) {
  Spread out = spread;
  for (size_t back = 1; back <= std::min(shape.size(), out.layout.size()); ++back) {
    if (shape[shape.size() - back] == 1) continue;
    for (const Factor& factor : out.layout[out.layout.size() - back]) {
      if (factor.axis >= 0) out.weighted[static_cast<size_t>(factor.axis)] = true;
    }
  }
  return out;
}

std::optional<Spread> summed(const Spread& spread, const std::vector<int64_t>& dims, bool keep_dims,
                             int node) {
  Spread out = spread;
  std::vector<bool> gone(spread.layout.size(), false);
  for (const int64_t dim : dims) {
    const std::optional<size_t> at = wrapped(dim, spread.layout.size());
    if (!at || gone[*at]) return std::nullopt;
    gone[*at] = true;
    for (const Factor& factor : out.layout[*at]) {
      // Of differently scaled elements a sum does not follow from the sums of the operand.
      if (factor.axis < 0 || out.weighted[static_cast<size_t>(factor.axis)]) continue;
      out.kept[static_cast<size_t>(factor.axis)] /= factor.extent;
      out.summed_by = node;
    }
    out.layout[*at].clear();
  }
  if (keep_dims) return out;
  std::vector<std::vector<Factor>> left;
  for (size_t d = 0; d < gone.size(); ++d) {
    if (!gone[d]) left.push_back(out.layout[d]);
  }
  out.layout = std::move(left);
  return out;
}

std::optional<Spread> pooled(const Spread& spread, const std::vector<int64_t>& shape, size_t rank,
                             int node) {
  if (shape.size() != spread.layout.size() || rank > shape.size()) return std::nullopt;
  Spread out = spread;
  for (size_t d = shape.size() - rank; d < shape.size(); ++d) {
    std::vector<Factor>& dimension = out.layout[d];
    if (extent_of(dimension) == shape[d]) continue;  // windows of one element
    // Windows are known to lie within one axis only where the dimension is all of it.
    if (dimension.size() != 1 || shape[d] < 1 || shape[d] > dimension.front().extent) {
      return std::nullopt;
    }
    Factor& factor = dimension.front();
    if (factor.axis >= 0) {
      const auto axis = static_cast<size_t>(factor.axis);
      if (out.weighted[axis] || out.kept[axis] != factor.extent) return std::nullopt;
      out.kept[axis] = shape[d];
      out.summed_by = node;
    }
    factor.extent = shape[d];
    if (factor.extent == 1) dimension.clear();
  }
  return out;
}

}  // namespace ke::ir
