// SPDX-License-Identifier: Apache-2.0
//
// The text of single operations on printed values, whose operands have one dtype.
#pragma once

#include "target/cuda/scalar_printer.hpp"

namespace ke::cuda {

bool is_half(ir::DType dtype);  // either kind of 16 bits

Value unary_value(ir::UnaryOp op, const Value& a);
Value binary_value(ir::BinaryOp op, const Value& a, const Value& b);
Value cast_value(const Value& value, ir::DType dtype);

}  // namespace ke::cuda
