// SPDX-License-Identifier: Apache-2.0
//
// Reductions by rows: what reductions, softmax and the norms share. A row is what one result of a
// reduction is made of.
#pragma once

#include <string>
#include <vector>

#include "ir/lower/call.hpp"

namespace ke::ir {

// A tensor seen as rows: the kept dimensions are the parallel axes, the others the reduction axes.
struct Rows {
  std::vector<Axis> parallel;   // i0, i1, …
  std::vector<Axis> reduction;  // r0, r1, …
  Indices indices;              // of the tensor: parallel axes first, then reduction axes
  std::vector<size_t> kept;     // the tensor's dimensions behind the parallel axes
  int64_t count = 1;            // elements a row

  // Within a map over the whole tensor: the axes that name the row.
  Indices row_of_element() const;
};

// dims: sorted, distinct, wrapped.
Rows rows_of(const Shape& shape, const std::vector<int64_t>& dims);

// One value a row. Sums and products accumulate in the element's dtype.
TensorId reduce(LoweringContext& context, const Rows& rows, ReduceOp op, const std::string& name,
                DType dtype, const ExprPtr& element);

// One value a row, computed from others (body is over the parallel axes).
TensorId row_map(LoweringContext& context, const Rows& rows, const std::string& name, DType dtype,
                 const ExprPtr& body);

// The result lives in a tensor of one value a row, whether it keeps the reduced dimensions or not.
Result<void> place_rows(LoweringContext& context, const Call& call, ValueId result,
                        const Rows& rows, TensorId tensor);
// row_map and place_rows in one, named and typed as the result.
Result<void> place_row_map(LoweringContext& context, const Call& call, ValueId result,
                           const Rows& rows, const ExprPtr& body);

struct Moments {
  TensorId mean;     // one a row
  TensorId squares;  // sum of (element - mean)^2, one a row
};
// Two passes, as numerics want it; all in the element's (floating) dtype.
Moments mean_and_squares(LoweringContext& context, const Rows& rows, const std::string& name,
                         const ExprPtr& element);

}  // namespace ke::ir
