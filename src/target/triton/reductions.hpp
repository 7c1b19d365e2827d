// SPDX-License-Identifier: Apache-2.0
//
// Reductions and scans as expressions of Triton's language.
#pragma once

#include <string>
#include <string_view>

#include "ir/program.hpp"

namespace ke::triton {

// What changes no other value: "0.0", "float('-inf')".
std::string_view identity_of(ir::ReduceOp op, bool floating);
// Two values joined, element by element.
std::string combined(ir::ReduceOp op, const std::string& a, const std::string& b);
// A tile's rows, each joined to one value; the axis stays, of extent 1.
std::string collected(ir::ReduceOp op, const std::string& a);
// A tile's rows, each element joined with those before it, or after it.
std::string scanned(ir::ReduceOp op, const std::string& a, bool backwards);

}  // namespace ke::triton
