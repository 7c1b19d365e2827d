// SPDX-License-Identifier: Apache-2.0
//
// Shape, index and dtype arithmetic of lowering.
#include "ir/lower/shapes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace ke::ir {
namespace {

// Category order of torch's promotion: boolean < integral < floating.
int category(DType dtype) {
  if (dtype == DType::boolean) return 0;
  return is_integral(dtype) ? 1 : 2;
}

// The row-major position of `indices` within the dimensions [first, last) of `shape`.
ExprPtr linear_index(const Shape& shape, const Indices& indices, size_t first, size_t last) {
  ExprPtr position = index_constant(0);
  int64_t stride = 1;
  for (size_t d = last; d-- > first;) {
    position =
        binary(BinaryOp::add, binary(BinaryOp::mul, indices[d], index_constant(stride)), position);
    stride *= shape[d];
  }
  return position;
}

// Splits a row-major position into one index for each of the dimensions [first, last) of `shape`.
void split_index(const ExprPtr& position, const Shape& shape, size_t first, size_t last,
                 Indices& result) {
  int64_t stride = 1;
  for (size_t d = first; d < last; ++d) stride *= shape[d];
  for (size_t d = first; d < last; ++d) {
    stride /= shape[d];
    ExprPtr index = binary(BinaryOp::floor_div, position, index_constant(stride));
    if (d > first) index = binary(BinaryOp::mod, index, index_constant(shape[d]));
    result.push_back(std::move(index));
  }
}

}  // namespace

int64_t element_count(const Shape& shape) {
  int64_t count = 1;
  for (const int64_t extent : shape) count *= extent;
  return count;
}

Indices axes(size_t count, size_t first) {
  Indices result;
  for (size_t d = 0; d < count; ++d) result.push_back(axis(static_cast<int>(first + d)));
  return result;
}

std::vector<Axis> parallel_axes(const Shape& shape) {
  std::vector<Axis> result;
  for (size_t d = 0; d < shape.size(); ++d) result.push_back({fmt::format("i{}", d), shape[d]});
  return result;
}

Result<int64_t> wrap_dimension(int64_t dim, size_t rank, std::string_view op) {
  const auto count = std::max<int64_t>(static_cast<int64_t>(rank), 1);
  if (dim < -count || dim >= count) {
    return Error{Errc::invalid, fmt::format("{}: dimension {} is out of range", op, dim)};
  }
  return dim < 0 ? dim + count : dim;
}

Result<std::vector<int64_t>> wrap_dimensions(const std::vector<int64_t>& dims, size_t rank,
                                             std::string_view op) {
  std::vector<int64_t> result;
  for (const int64_t dim : dims) {
    const int64_t wrapped = TRY(wrap_dimension(dim, rank, op));
    if (rank > 0) result.push_back(wrapped);
  }
  if (dims.empty()) {
    for (size_t d = 0; d < rank; ++d) result.push_back(static_cast<int64_t>(d));
  }
  std::sort(result.begin(), result.end());
  if (std::adjacent_find(result.begin(), result.end()) != result.end()) {
    return Error{Errc::invalid, fmt::format("{}: a dimension appears twice", op)};
  }
  return result;
}

Indices reshape_indices(const Shape& from, const Indices& indices, const Shape& to) {
  if (element_count(to) == 0) return Indices(to.size(), index_constant(0));
  Indices result;
  size_t f = 0, t = 0;
  while (t < to.size()) {
    // The shortest group of dimensions from here with equally many elements on both sides.
    size_t f_end = f, t_end = t + 1;
    int64_t f_count = 1, t_count = to[t];
    while (f_count != t_count) {
      if (f_count < t_count) {
        f_count *= from[f_end++];
      } else {
        t_count *= to[t_end++];
      }
    }
    split_index(linear_index(from, indices, f, f_end), to, t, t_end, result);
    f = f_end;
    t = t_end;
  }
  return result;
}

DType promote(DType a, DType b) {
  if (a == b) return a;
  if (category(a) != category(b)) return category(a) > category(b) ? a : b;
  if (is_floating(a)) {
    const bool both_half = compute_dtype(a) != a && compute_dtype(b) != b;
    return both_half ? DType::float32 : std::min(a, b);  // the enum lists wider types first
  }
  if (a != DType::uint8 && b != DType::uint8) return std::min(a, b);
  const DType other = a == DType::uint8 ? b : a;
  return other == DType::int8 ? DType::int16 : other;
}

ExprPtr lowest(DType dtype) {
  if (is_floating(dtype)) return constant(dtype, -std::numeric_limits<double>::infinity());
  if (dtype == DType::boolean || dtype == DType::uint8) return constant_int(dtype, 0);
  return constant_int(dtype, -1 - (INT64_MAX >> (64 - 8 * bytes_of(dtype))));
}

ExprPtr highest(DType dtype) {
  if (is_floating(dtype)) return constant(dtype, std::numeric_limits<double>::infinity());
  if (dtype == DType::boolean) return constant_int(dtype, 1);
  if (dtype == DType::uint8) return constant_int(dtype, 255);
  return constant_int(dtype, INT64_MAX >> (64 - 8 * bytes_of(dtype)));
}

ExprPtr number(DType dtype, double value) { return cast(dtype, constant(DType::float64, value)); }

}  // namespace ke::ir
