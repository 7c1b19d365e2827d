// SPDX-License-Identifier: Apache-2.0
//
// Shape, index and dtype arithmetic of lowering, as PyTorch defines it.
#pragma once

#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "ir/program.hpp"

namespace ke::ir {

using Shape = std::vector<int64_t>;
using Indices = std::vector<ExprPtr>;

// --- Shapes -------------------------------------------------------------------------------------
int64_t element_count(const Shape& shape);
Shape contiguous_strides(const Shape& shape);
Indices axes(size_t count, size_t first = 0);         // axis(first), axis(first + 1), …
std::vector<Axis> parallel_axes(const Shape& shape);  // named i0, i1, …
// Dimension in [0, rank); negative ones count from the end. A scalar has one dimension, as in ATen.
Result<int64_t> wrap_dimension(int64_t dim, size_t rank, std::string_view op);
// Sorted, distinct, wrapped; empty means all, as in most of ATen.
Result<std::vector<int64_t>> wrap_dimensions(const std::vector<int64_t>& dims, size_t rank,
                                             std::string_view op);
// Indices into a tensor of shape `to` whose row-major position equals that of `indices` in `from`.
Indices reshape_indices(const Shape& from, const Indices& indices, const Shape& to);

// --- Dtypes -------------------------------------------------------------------------------------
// Half types compute in float32 (expr.hpp); every other type in itself.
constexpr DType compute_dtype(DType dtype) {
  return dtype == DType::float16 || dtype == DType::bfloat16 ? DType::float32 : dtype;
}
DType promote(DType a, DType b);  // torch.promote_types
ExprPtr lowest(DType dtype);      // identity of maximum
ExprPtr highest(DType dtype);     // identity of minimum
// A number as a constant of the dtype, whatever its category.
ExprPtr number(DType dtype, double value);

}  // namespace ke::ir
