// SPDX-License-Identifier: Apache-2.0
//
// The meaning of one scalar operation, used by constant folding and by the interpreter, so that the
// two can never disagree. float32, float16 and bfloat16 values travel as the float they are
// computed in; rounding to a half type happens in convert() alone. Integers and booleans travel as
// int64, wrapped to their width.
#pragma once

#include <cstdint>

#include "ir/expr.hpp"

namespace ke::ir {

// A floating dtype uses `real`, every other one uses `integer`.
struct Scalar {
  double real = 0;
  int64_t integer = 0;
};

// The dtype of the result for operands of dtype `operand`.
DType result_dtype(UnaryOp op, DType operand);
DType result_dtype(BinaryOp op, DType operand);

// Whether the operation exists for operands of that dtype (exp of an int64 does not).
bool accepts(UnaryOp op, DType operand);
bool accepts(BinaryOp op, DType operand);

// Both operands have dtype `operand`. Division by an integer zero yields 0; shifts by a negative or
// too large amount behave as if done one bit at a time for ever, as torch's do.
Scalar evaluate(UnaryOp op, DType operand, Scalar a);
Scalar evaluate(BinaryOp op, DType operand, Scalar a, Scalar b);

// float to integer truncates towards zero (out of range and NaN: unspecified, but the same
// everywhere here); anything to boolean is `!= 0`; to a half type rounds to nearest even.
Scalar convert(DType from, DType to, Scalar value);

bool is_true(DType dtype, Scalar value);

// float16/bfloat16 bits of a float, rounded to nearest even, and back.
uint16_t half_bits(float value);
float half_value(uint16_t bits);
uint16_t bfloat_bits(float value);
float bfloat_value(uint16_t bits);

}  // namespace ke::ir
