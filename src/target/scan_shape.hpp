// SPDX-License-Identifier: Apache-2.0
//
// What every target's scan skeleton asks of a kernel: the direction in which memory is walked, and
// what is accumulated in which type.
#pragma once

#include "ir/plan.hpp"

namespace ke::target {

// The kernel with its inner axis in the direction of memory. `backwards`: the scan runs from that
// axis's end, since most accesses walked the other way (the scan of a flipped tensor, flipped
// back).
struct ScanShape {
  ir::FusedKernel kernel;
  bool backwards = false;
  int64_t rows = 1;    // product of the row extents
  int64_t length = 0;  // of the inner axis
  int row_axis = -1;   // of the rows, the one along which memory suggests to go; -1: no rows
  bool across = false;  // rather along it than along the inner axis
  int axis() const { return static_cast<int>(kernel.rows.size()); }
  int64_t row_extent() const;  // of row_axis; 1 without rows
};
ScanShape scan_shape(const ir::Program& program, const ir::FusedKernel& kernel);

// What the scan accumulates in, 16-bit floats as float32.
ir::DType scan_dtype(const ir::FusedStage& scan);
// What is carried from one block of a row to the next: floating sums and products in float64. Error
// then grows with the length of a block, not of the row, and a product that leaves float32's range
// on its way comes back to it.
ir::DType carry_dtype(const ir::FusedStage& scan);
// Within a block: products in what is carried, everything else in scan_dtype().
ir::DType block_dtype(const ir::FusedStage& scan);

}  // namespace ke::target
