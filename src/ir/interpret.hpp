// SPDX-License-Identifier: Apache-2.0
//
// The executable meaning of tensor expressions: slow, obvious, and the reference every target is
// compared with. Itself compared with PyTorch on random graphs.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "ir/plan.hpp"
#include "ir/program.hpp"

namespace ke::ir {

// Dense bytes of one tensor, laid out by its declared strides (inputs) or contiguous (outputs).
using TensorBytes = std::vector<std::byte>;

// Runs the program on inputs given in Program::inputs order. Fails (Errc::invalid) when an input's
// size does not fit its declaration or a load leaves its tensor. Costs one tree walk an element:
// for tests. A verified program never makes it abort.
Result<std::vector<TensorBytes>> interpret(const Program& program,
                                           std::span<const TensorBytes> inputs);

// The same through fused kernels (realize()): what a target must compute. Reads of a tensor that no
// kernel has written yet are an error, and so are double writes of an element.
Result<std::vector<TensorBytes>> interpret(const Program& program,
                                           std::span<const FusedKernel> kernels,
                                           std::span<const TensorBytes> inputs);

// Bytes that a tensor with these extents and strides spans, from its first element to its last.
int64_t span_bytes(const Tensor& tensor);

}  // namespace ke::ir
