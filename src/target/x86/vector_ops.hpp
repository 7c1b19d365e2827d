// SPDX-License-Identifier: Apache-2.0
//
// The C++ text of single operations on printed values, scalar or vector, with the helpers they need
// noted in the context. Operands of one operation have one dtype; scalars mix with vectors.
#pragma once

#include <optional>

#include "target/x86/vector_printer.hpp"

namespace ke::x86 {

bool is_half(ir::DType dtype);  // either kind of 16 bits

Value unary_value(PrintContext& context, ir::UnaryOp op, const Value& a, int lanes);

// Empty when a vector operand has no vector form of the operation (integer division and the like).
std::optional<Value> binary_value(PrintContext& context, ir::BinaryOp op, const Value& a,
                                  const Value& b, int lanes);

Value cast_value(PrintContext& context, const Value& value, ir::DType dtype, int lanes);
Value select_value(PrintContext& context, const Value& condition, const Value& then_value,
                   const Value& else_value, int lanes);
Value splat_value(PrintContext& context, const Value& value, int lanes);

// "f32x8" of (float32, 8), "bf16x8"…: as stored in memory. One lane has no suffix.
std::string memory_type(ir::DType dtype, int lanes);

}  // namespace ke::x86
