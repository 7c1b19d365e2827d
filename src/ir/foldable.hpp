// SPDX-License-Identifier: Apache-2.0
//
// Work that a graph does as written but that its outputs do not need: dead code, and products of
// which only sums are used. sum_n A B = A (sum_n B): one matrix-vector product instead of a matrix
// product; the mean over a transposed convolution is channel sums times sums of weights.
#pragma once

#include <cstdint>

#include "ir/graph.hpp"

namespace ke::ir {

// Operations (Node::flops) that the least form found does without. A fold that is not recognized
// spares nothing; pointwise work on a folded product's result is scaled down with it.
int64_t spared_flops(const Graph& graph);

}  // namespace ke::ir
