// SPDX-License-Identifier: Apache-2.0
//
// The executable meaning of tensor expressions: slow, obvious, and the reference every target is
// compared with. Itself compared with PyTorch on random graphs.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "ir/program.hpp"

namespace ke::ir {

// Dense bytes of one tensor, laid out by its declared strides (inputs) or contiguous (outputs).
using TensorBytes = std::vector<std::byte>;

// Runs the program on inputs given in Program::inputs order. Fails (Errc::invalid) when an input's
// size does not fit its declaration. Costs one tree walk an element: for tests.
Result<std::vector<TensorBytes>> interpret(const Program& program,
                                           std::span<const TensorBytes> inputs);

}  // namespace ke::ir
