// SPDX-License-Identifier: Apache-2.0
//
// Operations of the IR as Triton text, and the functions at file scope that they call.
#pragma once

#include <string>
#include <string_view>

#include "ir/expr.hpp"

namespace ke::triton {

// Operands are atoms of the compute type. Empty when there is no form.
std::string unary_text(ir::UnaryOp op, ir::DType dtype, const std::string& a);
// `plain`: integers of which neither is negative.
std::string binary_text(ir::BinaryOp op, ir::DType dtype, const std::string& a,
                        const std::string& b, bool plain);

extern const std::string_view kHelpers;  // definitions of what these texts call

}  // namespace ke::triton
