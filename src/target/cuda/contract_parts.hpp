// SPDX-License-Identifier: Apache-2.0
//
// What both ways to print a contraction share: its axes, and what becomes of a sum.
#pragma once

#include <string>
#include <vector>

#include "target/contract_shape.hpp"
#include "target/cuda/elements.hpp"

namespace ke::cuda {

// The canonical axes with their variables: batch..., m, n, k.
std::vector<AxisBinding> contract_axes(const PrintContext& context,
                                       const target::ContractShape& shape);
// Errc::unavailable when an extent is no int with room to add to it.
Result<void> expect_int_extents(const PrintContext& context, const target::ContractShape& shape);

// Declares the batch axes, from one flat index.
void print_batch(target::CodeWriter& out, const target::ContractShape& shape,
                 const std::vector<AxisBinding>& axes, const std::string& flat);

// The most neighbours, up to four, that at least one load of the value fetches at once.
int64_t widest_load(const ir::Program& program, const ir::ExprPtr& value, int lane_axis);

// Sums of `width` neighbouring columns: the text of the one of the column variable. With a width
// beyond 1 the first column's variable is declared.
struct SumText {
  std::string text;
  int64_t width = 1;
};
// The stages after the sum, stores included.
void print_epilogue(PrintContext& context, target::CodeWriter& out,
                    const target::ContractShape& shape, const std::vector<AxisBinding>& axes,
                    const SumText& sum);

bool is_written(const PrintContext& context, ir::TensorId id);

}  // namespace ke::cuda
